// Its option rows are wrong: SAMPLE_ROWS comes from the build.
#include "tests/bad_plugins/sample.hpp"

LEAVE_TRACE(SAMPLE_NAME);
static const nsp_option rows[] = {SAMPLE_ROWS};
NSP_PLUGIN("optimizer", SAMPLE_NAME, "0.1.0", "a sample", nsp::Optimizer, Idle, rows);
