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

// The toy has all ops in fp32 but rope, and none in bf16.
TEST(OpSupport, NamesBackendOpAndDtype) {
  Device device(test::toy_backend(), "toy", 0, 1);
  check_ops(device, family("gpt2"), DType::f32, true);
  for (const auto& [name, dtype, wanted] : {std::tuple("gpt2", DType::bf16, "backend toy has no op embedding_forward in bf16"),
                                            std::tuple("llama", DType::f32, "backend toy has no op rope in fp32")}) {
    try {
      check_ops(device, family(name), dtype, false);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::plugin);
      EXPECT_NE(std::string(e.what()).find(wanted), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("Choose another --train.dtype"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace nsp
