/* A module that does nothing, so that its file is small. */
#include "nsp/abi.h"

NSP_PLUGIN_DEFINE(NSP_ABI_C, 2, "backend", "seed", "1.0", "a seed for the fuzzer", NULL, 0, NULL, NULL, NULL);
