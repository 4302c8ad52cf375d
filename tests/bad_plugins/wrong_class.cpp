// An optimizer that claims to be a C table, with another major version and stamp as well.
#include "tests/bad_plugins/sample.hpp"

#undef NSP_ABI_MAJOR
#define NSP_ABI_MAJOR 7
#undef NSP_STAMP_BASE
#define NSP_STAMP_BASE "other"
LEAVE_TRACE("wrong_class");
NSP_PLUGIN_DEFINE(NSP_ABI_C, 0, "optimizer", "wrong_class", "0.1.0", "a sample", nullptr, 0, (::nsp::create_plugin<nsp::Optimizer, Idle>),
                  (::nsp::destroy_plugin<nsp::Optimizer>), nullptr);
