// Needs a feature that no processor has: bit 40.
#include "tests/bad_plugins/sample.hpp"

LEAVE_TRACE("cpu_feature");
NSP_PLUGIN_DEFINE(NSP_ABI_CXX, 0x10000000000, "optimizer", "cpu_feature", "0.1.0", "a sample", nullptr, 0,
                  (::nsp::create_plugin<nsp::Optimizer, Idle>), (::nsp::destroy_plugin<nsp::Optimizer>), nullptr);
