/* Tells core/isa.pyx which instruction sets the core was compiled for. */
#include "../core/isa.h"

const char ISA_NAME(isa_compiled) = 1;
