// Needs a shared library that the loader does not find.
#include "tests/bad_plugins/sample.hpp"

int absent_answer();
LEAVE_TRACE("missing_library");

class Needy : public Idle {
 public:
  explicit Needy(const nsp::PluginContext& context) : Idle(context), bytes_(absent_answer()) {}
  double bytes_per_parameter() const override { return bytes_; }

 private:
  double bytes_;
};
static const nsp_option rows[] = {{"rate", "float", "0.5", "a number"}};
NSP_PLUGIN("optimizer", "missing_library", "0.1.0", "a sample", nsp::Optimizer, Needy, rows);
