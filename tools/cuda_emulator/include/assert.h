// Stands in for the C library's header: a failed device assertion ends the launch with an error instead of the process.
// Included again after NDEBUG has changed, as that one may be.
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : cuemu_trap("device-side assert: " #condition))
#endif
