# The driver's entry points that are used, by their C types: `driver.pyx` fills the table and is its only user.
from tensorrt_lite._C.cuda.driver cimport DevicePointer

cdef extern from *:
    """
    #include <stdint.h>
    typedef struct { int type, handle_types; struct { int type, id; } location; void* metadata; unsigned char flags[8]; } trt_allocation_properties;
    typedef struct { struct { int type, id; } location; int flags; } trt_access_description;
    typedef struct { char bytes[64]; } trt_shared_handle;              /* CUipcMemHandle, CUipcEventHandle */
    static trt_allocation_properties trt_pinned_on(int device) {
      trt_allocation_properties p = {1, 0, {1, device}, 0, {0}};        /* CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE */
      return p;
    }
    static trt_access_description trt_access_of(int device) {
      trt_access_description a = {{1, device}, 3};                      /* reading and writing */
      return a;
    }
    """
    ctypedef struct AllocationProperties "trt_allocation_properties":
        int type
    ctypedef struct AccessDescription "trt_access_description":
        int flags
    ctypedef struct SharedHandle "trt_shared_handle":
        char bytes[64]
    AllocationProperties pinned_on "trt_pinned_on"(int device) noexcept
    AccessDescription access_of "trt_access_of"(int device) noexcept

ctypedef int (*InitCall)(unsigned int) noexcept nogil
ctypedef int (*IntegerCall)(int*) noexcept nogil
ctypedef int (*DeviceGetCall)(int*, int) noexcept nogil
ctypedef int (*DeviceNameCall)(char*, int, int) noexcept nogil
ctypedef int (*DeviceAttributeCall)(int*, int, int) noexcept nogil
ctypedef int (*HandleDeviceCall)(void**, int) noexcept nogil
ctypedef int (*HandleCall)(void*) noexcept nogil
ctypedef int (*HandleOutCall)(void**) noexcept nogil
ctypedef int (*AllocateCall)(DevicePointer*, size_t) noexcept nogil
ctypedef int (*ReleaseCall)(DevicePointer) noexcept nogil
ctypedef int (*InfoCall)(size_t*, size_t*) noexcept nogil
ctypedef int (*ToDeviceCall)(DevicePointer, const void*, size_t, void*) noexcept nogil
ctypedef int (*ToHostCall)(void*, DevicePointer, size_t, void*) noexcept nogil
ctypedef int (*OnDeviceCall)(DevicePointer, DevicePointer, size_t, void*) noexcept nogil
ctypedef int (*FillCall)(DevicePointer, unsigned char, size_t, void*) noexcept nogil
ctypedef int (*LoadCall)(void**, const void*) noexcept nogil
ctypedef int (*FunctionCall)(void**, void*, const char*) noexcept nogil
ctypedef int (*SynchronizeCall)() noexcept nogil
ctypedef int (*StreamCreateCall)(void**, unsigned int, int) noexcept nogil
ctypedef int (*StreamWaitCall)(void*, void*, unsigned int) noexcept nogil
ctypedef int (*PriorityCall)(int*, int*) noexcept nogil
ctypedef int (*EventCreateCall)(void**, unsigned int) noexcept nogil
ctypedef int (*EventRecordCall)(void*, void*) noexcept nogil
ctypedef int (*EventTimeCall)(float*, void*, void*) noexcept nogil
ctypedef int (*HostAllocateCall)(void**, size_t, unsigned int) noexcept nogil
ctypedef int (*HostRegisterCall)(void*, size_t, unsigned int) noexcept nogil
ctypedef int (*HostFreeCall)(void*) noexcept nogil
ctypedef int (*PeerCall)(DevicePointer, void*, DevicePointer, void*, size_t, void*) noexcept nogil
ctypedef int (*CaptureBeginCall)(void*, int) noexcept nogil
ctypedef int (*CaptureEndCall)(void*, void**) noexcept nogil
ctypedef int (*CaptureStatusCall)(void*, int*) noexcept nogil
ctypedef int (*InstantiateCall)(void**, void*, unsigned long long) noexcept nogil
ctypedef int (*GraphLaunchCall)(void*, void*) noexcept nogil
ctypedef int (*PeerQueryCall)(int*, int, int) noexcept nogil
ctypedef int (*TotalCall)(size_t*, int) noexcept nogil
ctypedef int (*UuidCall)(char*, int) noexcept nogil
ctypedef int (*GranularityCall)(size_t*, const AllocationProperties*, int) noexcept nogil
ctypedef int (*ReserveCall)(DevicePointer*, size_t, size_t, DevicePointer, unsigned long long) noexcept nogil
ctypedef int (*RangeCall)(DevicePointer, size_t) noexcept nogil
ctypedef int (*MemoryCreateCall)(unsigned long long*, size_t, const AllocationProperties*, unsigned long long) noexcept nogil
ctypedef int (*MemoryReleaseCall)(unsigned long long) noexcept nogil
ctypedef int (*MapCall)(DevicePointer, size_t, size_t, unsigned long long, unsigned long long) noexcept nogil
ctypedef int (*AccessCall)(DevicePointer, size_t, const AccessDescription*, size_t) noexcept nogil
ctypedef int (*AllocateAsyncCall)(DevicePointer*, size_t, void*) noexcept nogil
ctypedef int (*ReleaseAsyncCall)(DevicePointer, void*) noexcept nogil
ctypedef int (*PoolAttributeCall)(void*, int, void*) noexcept nogil
ctypedef int (*PoolTrimCall)(void*, size_t) noexcept nogil
ctypedef int (*AddressRangeCall)(DevicePointer*, size_t*, DevicePointer) noexcept nogil
ctypedef int (*ShareMemoryCall)(SharedHandle*, DevicePointer) noexcept nogil
ctypedef int (*OpenMemoryCall)(DevicePointer*, SharedHandle, unsigned int) noexcept nogil
ctypedef int (*ShareEventCall)(SharedHandle*, void*) noexcept nogil
ctypedef int (*OpenEventCall)(void**, SharedHandle) noexcept nogil
ctypedef int (*TextCall)(int, const char**) noexcept nogil
ctypedef int (*LaunchCall)(void*, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                           unsigned int, void*, void**, void**) noexcept nogil

# Filled by driver.pyx all or not at all, in the order of its names: each member is one pointer wide.
cdef struct Driver:
    InitCall init
    IntegerCall version
    IntegerCall device_count
    DeviceGetCall device_get
    DeviceNameCall device_name
    DeviceAttributeCall device_attribute
    HandleDeviceCall retain_primary
    HandleCall set_context
    HandleOutCall get_context
    HandleCall push_context
    HandleOutCall pop_context
    AllocateCall allocate
    ReleaseCall release
    InfoCall memory_info
    ToDeviceCall to_device
    ToHostCall to_host
    OnDeviceCall on_device
    FillCall fill
    LoadCall module_load
    HandleCall module_unload
    FunctionCall module_function
    SynchronizeCall synchronize
    HandleCall stream_synchronize
    TextCall error_text
    TextCall error_name
    LaunchCall launch
    StreamCreateCall stream_create
    HandleCall stream_destroy
    HandleCall stream_query
    StreamWaitCall stream_wait
    PriorityCall stream_priorities
    EventCreateCall event_create
    EventRecordCall event_record
    HandleCall event_query
    HandleCall event_synchronize
    EventTimeCall event_time
    HandleCall event_destroy
    HostAllocateCall host_allocate
    HostFreeCall host_free
    PeerCall peer_copy
    CaptureBeginCall capture_begin
    CaptureEndCall capture_end
    CaptureStatusCall capture_status
    InstantiateCall graph_instantiate
    GraphLaunchCall graph_launch
    HandleCall graph_destroy
    HandleCall graph_exec_destroy
    PeerQueryCall peer_access
    TotalCall total_memory
    UuidCall uuid
    IntegerCall exchange_capture_mode
    GranularityCall granularity
    ReserveCall address_reserve
    RangeCall address_free
    MemoryCreateCall memory_create
    MemoryReleaseCall memory_release
    MapCall memory_map
    RangeCall memory_unmap
    AccessCall memory_access
    AllocateAsyncCall allocate_async
    ReleaseAsyncCall release_async
    HandleDeviceCall default_pool
    PoolAttributeCall pool_set
    PoolTrimCall pool_trim
    AddressRangeCall address_range
    ShareMemoryCall share_memory
    OpenMemoryCall open_memory
    ReleaseCall close_memory
    ShareEventCall share_event
    OpenEventCall open_event
    HostRegisterCall host_register
    HostFreeCall host_unregister
    SynchronizeCall profiler_start
    SynchronizeCall profiler_stop
