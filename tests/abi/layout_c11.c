/* abi.h and backend.h as C11: this file is compiled with -std=c11 -Wall -Wextra -Wpedantic -Werror. */
#include "tests/abi/layout_c11.h"

const layout_row *layout_of_c11(size_t *count) {
  *count = sizeof(layout_rows) / sizeof(layout_rows[0]);
  return layout_rows;
}

static void *create(const void *context) {
  (void)context;
  return NULL;
}
static const nsp_option rows[] = {{"threads", "int", "1", "compute threads"}};
NSP_PLUGIN_DEFINE(NSP_ABI_C, NSP_CPU_X86_64_V2, "backend", "of_c11", "0.1.0", "a plug-in in C", rows, 1, create, NULL, NULL);

const nsp_plugin_v1 *plugin_of_c11(void) { return &nsp_plugin; }
const char *stamp_of_c11(void) { return NSP_STAMP; }
