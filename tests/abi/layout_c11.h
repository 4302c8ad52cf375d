/* What layout_c11.c found. */
#ifndef NSP_TESTS_LAYOUT_C11_H
#define NSP_TESTS_LAYOUT_C11_H

#include "tests/abi/layout_table.h"

#ifdef __cplusplus
extern "C" {
#endif
const layout_row *layout_of_c11(size_t *count);
const nsp_plugin_v1 *plugin_of_c11(void);
const char *stamp_of_c11(void);
#ifdef __cplusplus
}
#endif

#endif
