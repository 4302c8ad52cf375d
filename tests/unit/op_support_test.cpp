#include "core/plan/op_support.hpp"

#include <gtest/gtest.h>

#include "tests/support/toy_backend.hpp"

namespace nsp {
namespace {

ModelSpec family(const std::string& name) {
  ModelSpec spec;
  spec.family = name;
  return spec;
}

class Calls : public Optimizer {
 public:
  explicit Calls(std::vector<nsp_op> ops) : ops_(std::move(ops)) {}
  std::vector<StateDecl> declare() const override { return {}; }
  void step(const Ops&, const OptimizerPiece&, const StepScalars&) override {}
  double bytes_per_parameter() const override { return 0; }
  std::vector<nsp_op> ops() const override { return ops_; }

 private:
  const std::vector<nsp_op> ops_;
};

void expect_refusal(const Device& device, const std::string& family_name, DType dtype, const Optimizer* optimizer, const std::string& what,
                    const std::string& advice) {
  try {
    check_ops(device, family(family_name), dtype, optimizer);
    ADD_FAILURE() << what;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::plugin);
    EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(advice), std::string::npos) << e.what();
  }
}

// The toy has all ops in fp32 but rope, and none in bf16.
TEST(OpSupport, NamesBackendOpAndDtype) {
  const Device device(test::toy_backend(), "toy", 0, 1);
  const Calls optimizer({NSP_OP_adamw, NSP_OP_lerp});
  check_ops(device, family("gpt2"), DType::f32, &optimizer);
  expect_refusal(device, "gpt2", DType::bf16, nullptr, "backend toy has no op embedding_forward in bf16", "Choose another --train.dtype");
  expect_refusal(device, "llama", DType::f32, nullptr, "backend toy has no op rope in fp32", "Choose another --train.dtype");
}

TEST(OpSupport, AsksForWhatTheOptimizerCalls) {
  // Modules without adamw: one says so, one has no place for it in its table, and one left the place empty.
  nsp_backend says_so = *test::toy_backend();
  says_so.supports = [](nsp_device*, int32_t op, int32_t) { return op != NSP_OP_adamw ? 1 : 0; };
  nsp_op_table older = *test::toy_backend()->ops, empty = older;
  older.size = offsetof(nsp_op_table, adamw);
  empty.adamw = nullptr;
  nsp_backend with_older = *test::toy_backend(), with_empty = with_older;
  with_older.ops = &older;
  with_empty.ops = &empty;
  const Calls adamw({NSP_OP_axpy, NSP_OP_adamw}), sgd({NSP_OP_axpy, NSP_OP_scale});
  for (const nsp_backend* table : {&says_so, &with_older, &with_empty}) {
    const Device device(table, "toy", 0, 1);
    check_ops(device, family("gpt2"), DType::f32, nullptr);
    check_ops(device, family("gpt2"), DType::f32, &sgd);
    expect_refusal(device, "gpt2", DType::f32, &adamw, "backend toy has no op adamw in fp32. The optimizer of this run", "with --plugins");
  }
}

}  // namespace
}  // namespace nsp
