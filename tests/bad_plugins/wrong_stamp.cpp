// Built by another compiler. Its static initialiser would end the process, if it ran.
#include <cstdlib>

#include "tests/bad_plugins/sample.hpp"

#undef NSP_STAMP_BASE
#define NSP_STAMP_BASE "nsp0.0.9;gcc4;cxx11abi=0;c++201103L"
LEAVE_TRACE("wrong_stamp");
[[maybe_unused]] static const int ended = (std::abort(), 0);
static const nsp_option rows[] = {{"rate", "float", "0.5", "a number"}};
NSP_PLUGIN("optimizer", "wrong_stamp", "0.1.0", "a sample", nsp::Optimizer, Idle, rows);
