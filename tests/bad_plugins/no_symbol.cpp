// The note alone, without the symbol.
#include "tests/bad_plugins/sample.hpp"

LEAVE_TRACE("no_symbol");
NSP_NOTE_ASM(NSP_ABI_CXX, 0, "optimizer", "no_symbol", "0.1.0");
