// What the sample modules have in common: an optimizer that does nothing.
#pragma once

#include "nsp/optimizer.hpp"
#include "nsp/plugin.hpp"
#include "tests/bad_plugins/trace.hpp"

class Idle : public nsp::Optimizer {
 public:
  explicit Idle(const nsp::PluginContext& context) { leave_trace(("create " + context.options.section()).c_str()); }
  ~Idle() override { leave_trace("destroy"); }
  std::vector<nsp::StateDecl> declare() const override { return {}; }
  void step(const nsp::Ops&, const nsp::OptimizerPiece&, const nsp::StepScalars&) override {}
  double bytes_per_parameter() const override { return 0; }
};
