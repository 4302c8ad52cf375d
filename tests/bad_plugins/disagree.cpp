// Its note states another version than its symbol.
#include "tests/bad_plugins/sample.hpp"

LEAVE_TRACE("disagree");
NSP_NOTE_ASM(NSP_ABI_CXX, 0, "optimizer", "disagree", "0.1.0");
#undef NSP_NOTE_ASM
#define NSP_NOTE_ASM(cls, cpu, kind, name, version) static_assert(true)
static const nsp_option rows[] = {{"rate", "float", "0.5", "a number"}};
NSP_PLUGIN("optimizer", "disagree", "0.2.0", "a sample", nsp::Optimizer, Idle, rows);
