// Nothing is wrong with it but where it lies or what it is called: SAMPLE_KIND and SAMPLE_NAME come from the build.
#include "tests/bad_plugins/sample.hpp"

LEAVE_TRACE(SAMPLE_NAME);
static const nsp_option rows[] = {{"rate", "float", "0.5", "a number"}};
NSP_PLUGIN(SAMPLE_KIND, SAMPLE_NAME, "0.1.0", "a sample", nsp::Optimizer, Idle, rows);
