/* Backends that only probe: SAMPLE_NAME and SAMPLE_SCORE come from the build. A C file, as a vendor may write it. */
#include <stdio.h>

#include "nsp/backend.h"

static int64_t probe(char *reason, uint64_t reason_size) {
  if (SAMPLE_SCORE <= 0) snprintf(reason, (size_t)reason_size, "no device answers");
  return SAMPLE_SCORE;
}

static const nsp_op_table ops = {.size = sizeof(nsp_op_table)};
static const nsp_backend table = {.size = sizeof(nsp_backend), .abi_major = NSP_ABI_MAJOR, .abi_minor = NSP_ABI_MINOR, .ops = &ops};
static void *create(const void *context) {
  (void)context;
  return (void *)&table;
}

NSP_PLUGIN_DEFINE(NSP_ABI_C, 0, "backend", SAMPLE_NAME, "0.1.0", "a sample", NULL, 0, create, NULL, probe);
