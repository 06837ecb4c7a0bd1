// Stands in for the toolkit header of this name, so that a kernel may include it.
#pragma once
#include "cuemu.h"
