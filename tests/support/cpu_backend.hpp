// The CPU backend module of this build, for tests that compute.
#pragma once

#include <string>

#include "nsp/backend.h"

namespace nsp::test {

// Loads every libnsp_backend_cpu_*.so of the folders in NSP_PLUGIN_PATH that this processor can run, asks its probe, and
// returns the table of the best. Static: never released. Throws std::runtime_error that says what was looked at if none is
// usable, so that a test without a backend fails and is not passed over.
const nsp_backend* load_cpu_backend();

}  // namespace nsp::test
