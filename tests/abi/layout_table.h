/* The layout of the C border as a table. Compiled as C11 by layout_c11.c and as C++20 by abi_test.cpp, from the same list:
 * both must give the same table. */
#ifndef NSP_TESTS_LAYOUT_TABLE_H
#define NSP_TESTS_LAYOUT_TABLE_H

#include "nsp/backend.h"

typedef struct layout_row {
  const char *structure, *member; /* member NULL: the struct itself */
  size_t offset, size;
} layout_row;

#define STRUCT(s) {#s, NULL, 0, sizeof(s)},
#define MEMBER(s, m) {#s, #m, offsetof(s, m), sizeof(((s *)0)->m)},
#define NSP_OP_LAYOUT(name, tensors) {"nsp_op_table", #name, offsetof(nsp_op_table, name), sizeof(((nsp_op_table *)0)->name)},
static const layout_row layout_rows[] = {
#include "tests/abi/layout.inc"
    {"nsp_op_table", NULL, 0, sizeof(nsp_op_table)},
    {"nsp_op_table", "size", 0, sizeof(uint64_t)},
    NSP_OP_LIST(NSP_OP_LAYOUT)};
#undef STRUCT
#undef MEMBER
#undef NSP_OP_LAYOUT

#endif
