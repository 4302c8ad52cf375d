// Built with the headers of another major version.
#include "tests/bad_plugins/sample.hpp"

#undef NSP_ABI_MAJOR
#define NSP_ABI_MAJOR 7
LEAVE_TRACE("wrong_major");
static const nsp_option rows[] = {{"rate", "float", "0.5", "a number"}};
NSP_PLUGIN("optimizer", "wrong_major", "0.1.0", "a sample", nsp::Optimizer, Idle, rows);
