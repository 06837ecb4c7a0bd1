"""Refuses, at import, a processor or a TENSORRT_LITE_ISA that the compiled loops cannot serve; says which instruction sets there are.

Imported by core/iterator.pyx, and so before any loop is chosen."""

cdef extern from *:
    """
    #include "isa.h"
    ISA_WEAK const char isa_compiled_base, isa_compiled_avx2, isa_compiled_avx512;
    static int isa_compiled(int set) { return (set == ISA_BASE ? &isa_compiled_base : set == ISA_AVX2 ? &isa_compiled_avx2 : &isa_compiled_avx512) != NULL; }
    """
    int isa_processor()
    int isa_level()
    bint isa_compiled(int set)

SETS = ("base", "avx2", "avx512")       # in ascending order
COMPILED = tuple([SETS[i] for i in range(len(SETS)) if isa_compiled(i)])


def refusal(wanted, highest, compiled):
    """Why loops compiled for the sets `compiled` cannot run as TENSORRT_LITE_ISA=`wanted` says (empty: unset) on a processor whose highest set
    is `highest`; None if they can. Fewer instructions than asked for would be silent, more would end the process."""
    able = SETS[:SETS.index(highest) + 1]
    if wanted and wanted not in SETS:
        return f"TENSORRT_LITE_ISA={wanted}: there is no such instruction set; choose from {', '.join([s for s in able if s in compiled])}"
    if wanted and wanted not in able:
        return f"TENSORRT_LITE_ISA={wanted}: this processor has no more than {highest}"
    if wanted and wanted not in compiled:
        return (f"TENSORRT_LITE_ISA={wanted}: this core was compiled for {', '.join(compiled)} alone (TENSORRT_LITE_NATIVE=1); build it without "
                "TENSORRT_LITE_NATIVE to choose")
    if not set(able) & set(compiled):
        return (f"this core was compiled for {', '.join(compiled)} alone (TENSORRT_LITE_NATIVE=1 on another machine), and this processor has no more than "
                f"{highest}; build it here, or without TENSORRT_LITE_NATIVE")
    return None


def instruction_set():
    """The highest instruction set of the loops in use: base, avx2 or avx512."""
    return [s for s in SETS[:isa_level() + 1] if s in COMPILED][-1]


def _refuse_unsupported():
    import os
    message = refusal(os.environ.get("TENSORRT_LITE_ISA", ""), SETS[isa_processor()], COMPILED)
    if message is not None:
        raise ImportError(message)


_refuse_unsupported()
