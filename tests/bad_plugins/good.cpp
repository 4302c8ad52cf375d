// Nothing is wrong with it.
#include "tests/bad_plugins/sample.hpp"

LEAVE_TRACE("good");
static const nsp_option rows[] = {{"rate", "float", "0.5", "a number"}, {"mode", "choice:a|b", "a", "a word"}};
NSP_PLUGIN("optimizer", "good", "1.2.3", "does nothing, properly", nsp::Optimizer, Idle, rows);
