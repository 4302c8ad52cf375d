// Its constructor throws, in three ways: SAMPLE_THROW comes from the build.
#include <stdexcept>

#include "tests/bad_plugins/sample.hpp"

LEAVE_TRACE(SAMPLE_NAME);
class Thrower : public Idle {
 public:
  explicit Thrower(const nsp::PluginContext& context) : Idle(context) { throw SAMPLE_THROW; }
};
static const nsp_option rows[] = {{"rate", "float", "0.5", "a number"}};
NSP_PLUGIN("optimizer", SAMPLE_NAME, "0.1.0", "a sample", nsp::Optimizer, Thrower, rows);
