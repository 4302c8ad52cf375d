// What a benchmark of ops counts, against numbers worked out by hand, and that it measures on any device.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/bench/fma_peak.hpp"
#include "core/bench/measure.hpp"
#include "core/bench/operand_data.hpp"
#include "core/bench/reference.hpp"
#include "tests/support/cpu_backend.hpp"
#include "tests/support/fake_device.hpp"
#include "tests/support/toy_backend.hpp"

namespace nsp::bench {
namespace {

// 2 blocks of 8 channels, 2 heads of 4, 16 between, 10 tokens (64 rows in storage), 6 positions; 3 sequences of 5 tokens: 15 rows.
StepShape small(const std::string& family) {
  ModelSpec spec = ModelSpec::of_family(family);
  spec.layers = 2;
  spec.hidden = 8;
  spec.heads = 2;
  spec.ffn = 16;
  spec.vocab = 10;
  spec.context = 6;
  return {spec.completed(), 3, 5};
}

const OpCase& find(const std::vector<OpCase>& cases, nsp_op op, const std::string& what) {
  for (const OpCase& c : cases)
    if (c.op == op && c.what == what) return c;
  throw std::runtime_error("no case " + op_name(op) + " " + what);
}

TEST(BenchCounts, Products) {
  const std::vector<OpCase> fp32 = op_cases(small("gpt2"), DType::f32), bf16 = op_cases(small("gpt2"), DType::bf16);
  // qkv is [24,8] with a bias: y = [15,24], 2 * 15 * 24 * 8 operations; moves 15*24 + 15*8 + 24*8 + 24 = 696 numbers.
  EXPECT_EQ(find(fp32, NSP_OP_matmul, "qkv y").flops, 5760);
  EXPECT_EQ(find(fp32, NSP_OP_matmul, "qkv y").bytes(), 4 * 696);
  EXPECT_EQ(find(fp32, NSP_OP_matmul, "qkv y").shape, "15x24x8");
  EXPECT_EQ(find(bf16, NSP_OP_matmul, "qkv y").bytes(), 2 * 696);
  EXPECT_EQ(find(fp32, NSP_OP_matmul, "qkv dx").flops, 5760);
  EXPECT_EQ(find(fp32, NSP_OP_matmul, "qkv dx").bytes(), 4 * (15 * 8 + 15 * 24 + 24 * 8));
  // dW [24,8] is fp32 in either dtype, read and written.
  EXPECT_EQ(find(fp32, NSP_OP_matmul, "qkv dW").flops, 5760);
  EXPECT_EQ(find(bf16, NSP_OP_matmul, "qkv dW").bytes(), 8 * 192 + 2 * (15 * 24 + 15 * 8));
  // The head: the table with its 64 stored rows; logits are fp32.
  EXPECT_EQ(find(bf16, NSP_OP_matmul, "head y").flops, 2 * 15 * 64 * 8);
  EXPECT_EQ(find(bf16, NSP_OP_matmul, "head y").bytes(), 4 * 15 * 64 + 2 * (15 * 8 + 64 * 8));
  EXPECT_EQ(find(fp32, NSP_OP_bias_gradient, "fc").bytes(), 4 * (2 * 16 + 15 * 16));
}

TEST(BenchCounts, Attention) {
  StepShape step = small("gpt2");
  const std::vector<OpCase> cases = op_cases(step, DType::f32);
  // A query sees 1, 2, 3, 4, 5 keys: 15 pairs; 3 sequences, 2 heads of 4 channels, two products of 2 operations a channel.
  EXPECT_EQ(attention_pairs(5, 0), 15);
  EXPECT_EQ(find(cases, NSP_OP_attention_forward, "causal").flops, 4 * 3 * 2 * 4 * 15);
  EXPECT_EQ(find(cases, NSP_OP_attention_backward, "causal").flops, 10 * 3 * 2 * 4 * 15);
  EXPECT_EQ(find(cases, NSP_OP_attention_forward, "causal").bytes(), 4 * (15 * 24 + 15 * 8 + 3 * 2 * 5));
  EXPECT_EQ(find(cases, NSP_OP_attention_backward, "causal").bytes(), 4 * (2 * 15 * 24 + 2 * 15 * 8 + 3 * 2 * 5));
  EXPECT_EQ(attention_pairs(5, 2), 1 + 2 + 2 + 2 + 2);
  EXPECT_EQ(attention_pairs(5, 9), 15);
  step.spec.window = 2;
  EXPECT_EQ(attention_forward_flops(step), 4 * 3 * 2 * 4 * 9);
}

TEST(BenchCounts, LayersAndRanges) {
  const std::vector<OpCase> cases = op_cases(small("gpt2"), DType::f32), llama = op_cases(small("llama"), DType::bf16);
  // 15 rows out, 15 rows of the token table, 5 of the position table, 15 tokens and 15 positions.
  EXPECT_EQ(find(cases, NSP_OP_embedding_forward, "tokens, positions").bytes(), 4 * (15 * 8 + 15 * 8 + 5 * 8 + 30));
  EXPECT_EQ(find(cases, NSP_OP_embedding_backward, "tokens, positions").bytes(), 4 * (15 * 8 + 2 * 15 * 8 + 2 * 5 * 8 + 30));
  EXPECT_EQ(find(cases, NSP_OP_layernorm_forward, "norm").bytes(), 4 * (2 * 15 * 8 + 2 * 8 + 2 * 15));
  EXPECT_EQ(find(cases, NSP_OP_layernorm_backward, "norm, dx +=").bytes(), 4 * (4 * 15 * 8 + 8 + 4 * 8 + 2 * 15));
  EXPECT_EQ(find(cases, NSP_OP_gelu_backward, "ffn, in place").bytes(), 4 * 3 * 15 * 16);
  EXPECT_EQ(find(cases, NSP_OP_classifier, "loss and gradient").bytes(), 4 * (2 * 15 * 10 + 2 * 15));
  EXPECT_EQ(find(llama, NSP_OP_swiglu_backward, "ffn").bytes(), 2 * 5 * 15 * 16);
  EXPECT_EQ(find(llama, NSP_OP_rope, "q and k").bytes(), 2 * 2 * 15 * 16 + 4 * 15);
  const auto n = static_cast<double>(small("gpt2").spec.parameters());
  EXPECT_EQ(find(cases, NSP_OP_adamw, "parameters").bytes(), 7 * 4 * n);
  EXPECT_EQ(find(cases, NSP_OP_sgd, "parameters").bytes(), 5 * 4 * n);
  EXPECT_EQ(find(cases, NSP_OP_lerp, "parameters").bytes(), 4 * 4 * n);
  EXPECT_EQ(find(cases, NSP_OP_cast, "parameters to bf16").bytes(), 6 * n);
  EXPECT_EQ(find(cases, NSP_OP_sum_of_squares, "parameters").bytes(), 4 * n + 8);
  ModelSpec large = small("gpt2").spec;
  large.vocab = 10000000;
  EXPECT_EQ(range_elements(large), 1 << 24);
}

TEST(BenchCounts, EveryOpOfTheTableIsThereForBothFamilies) {
  for (const char* family : {"gpt2", "llama"}) {
    std::set<int> ops;
    for (const OpCase& c : op_cases(small(family), DType::f32)) {
      ops.insert(c.op);
      const bool product = c.op == NSP_OP_matmul || c.op == NSP_OP_attention_forward || c.op == NSP_OP_attention_backward;
      EXPECT_EQ(c.flops > 0, product) << op_name(c.op);
      const bool other = op_name(c.op).rfind(family == std::string("gpt2") ? "rmsnorm" : "layernorm", 0) == 0;
      EXPECT_FALSE(other && c.in_family) << op_name(c.op);
    }
    EXPECT_EQ(ops.size(), static_cast<std::size_t>(NSP_OP_COUNT)) << family;
  }
}

TEST(BenchMeasure, Median) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 9}), 3);
}

// The host cannot touch this device's memory, and refuses what leaves an allocation: every case of every kind runs on it.
TEST(BenchMeasure, EveryCaseOnADeviceOfItsOwnMemory) {
  const auto fake = test::make_fake_backend(test::load_cpu_backend(), uint64_t{64} << 20, 1);
  Device device(fake->table(), "fake", 0, 1);
  Stream stream(device);
  for (const char* family : {"gpt2", "llama"}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const OpCase& c : op_cases(small(family), dtype)) {
        SCOPED_TRACE(std::string(family) + " " + op_name(c.op) + " " + c.what + " " + name_of(dtype));
        const OpTime time = measure(stream, c, {0, 1 << 14});
        EXPECT_EQ(time.supported, device.supports(c.op, dtype));
        if (!time.supported) continue;
        EXPECT_TRUE(std::isfinite(time.seconds) && time.seconds > 0);
        EXPECT_GE(time.samples, 5);
        EXPECT_GE(time.calls, 1);
        EXPECT_TRUE(c.flops > 0 || time.working_set >= 1 << 14) << time.working_set;
      }
    }
  }
  const StreamRate rate = stream_rate(stream, 0, 1 << 16);
  EXPECT_GT(rate.gigabytes, 0);
  EXPECT_NE(rate.by, "host triad");  // its memory is not the host's
  EXPECT_EQ(rate.triad, 0);
  EXPECT_EQ(fma_peak(stream, DType::f32, 0), 0);
}

// Bounds are wide, since other programs may run beside the test, but they hold off a kernel that a compiler emptied, and one that is
// not counted right by orders of magnitude.
TEST(BenchMeasure, FmaPeakOfTheHost) {
  Device device(test::load_cpu_backend(), "cpu", 0, 1);
  Stream stream(device);
  const double fp32 = fma_peak(stream, DType::f32, 0.02), bf16 = fma_peak(stream, DType::bf16, 0.02);
  EXPECT_GT(fp32, 1);     // GFLOP/s: no processor of 64 bits is that slow
  EXPECT_LT(fp32, 2000);  // of one core: 32 lanes of 2 flops at 10 GHz are 640, so more would be arithmetic that a compiler left out
  EXPECT_TRUE(bf16 == 0 || (bf16 > 1 && bf16 < 4000)) << bf16;
  EXPECT_GT(host_fma_peak(2, DType::f32, 0), 0);
  const StreamRate rate = stream_rate(stream, 0, 1 << 20);
  EXPECT_GT(rate.triad, 0);
  EXPECT_GE(rate.gigabytes, rate.triad);
}

TEST(BenchMeasure, WhatABackendLacksIsNotCalled) {
  Device device(test::toy_backend(), "toy", 0, 1);
  Stream stream(device);
  for (const OpCase& c : op_cases(small("gpt2"), DType::bf16)) EXPECT_FALSE(measure(stream, c, {}).supported) << op_name(c.op);
  EXPECT_EQ(matmul_peak(stream, DType::bf16, 0), 0);
}

TEST(BenchMeasure, ACaseThatDoesNotFitIsRefusedByName) {
  Device device(test::toy_backend(), "toy", 0, 1);  // of 1 MiB
  Stream stream(device);
  StepShape step = small("gpt2");
  step.micro_batch = 100000;
  try {
    const OperandData data(stream, find(op_cases(step, DType::f32), NSP_OP_matmul, "fc y"), 0);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(e.what()).find("matmul (fc y) needs"), std::string::npos) << e.what();
  }
}

TEST(BenchMeasure, SetsAreApartAndSharedTensorsAreNot) {
  const nsp_backend* cpu = test::load_cpu_backend();
  Device device(cpu, "cpu", 0, 1);
  Stream stream(device);
  const OpCase c = find(op_cases(small("gpt2"), DType::f32), NSP_OP_embedding_forward, "tokens, positions");
  const OperandData data(stream, c, 10000);
  ASSERT_GT(data.sets(), 1u);
  EXPECT_NE(data.set(0)[0].data(), data.set(1)[0].data());
  EXPECT_EQ(data.set(0)[2].data(), data.set(1)[2].data());
  EXPECT_EQ(data.set(data.sets())[0].data(), data.set(0)[0].data());
  ASSERT_TRUE(device.host_addressable());
  for (std::size_t s = 0; s < data.sets(); ++s) {
    const auto* tokens = static_cast<const int32_t*>(data.set(s)[1].data());
    const auto* positions = static_cast<const int32_t*>(data.set(s)[3].data());
    for (int i = 0; i < 15; ++i) {
      EXPECT_TRUE(tokens[i] >= 0 && tokens[i] < 10) << tokens[i];
      EXPECT_EQ(positions[i], i % 5);
    }
  }
}

// Parts of one tensor lie where the model has them: what is computed shows which numbers were read.
TEST(BenchMeasure, PartsOfOneTensor) {
  Device device(test::load_cpu_backend(), "cpu", 0, 1);
  ASSERT_TRUE(device.host_addressable());
  Stream stream(device);
  StepShape step = small("llama");
  step.spec.kv_heads = 1;
  step.spec.window = 1;  // a query sees its own key alone, so out is its value: channels 12 to 15 of 16
  const OpCase attention = find(op_cases(step, DType::f32), NSP_OP_attention_forward, "causal");
  const OpCase swiglu = find(op_cases(step, DType::f32), NSP_OP_swiglu_forward, "ffn");
  const OperandData heads(stream, attention, 0), halves(stream, swiglu, 0);
  attention.call(Ops(stream), heads.set(0));
  swiglu.call(Ops(stream), halves.set(0));
  finish(stream);
  const auto numbers = [](const TensorView& tensor) { return static_cast<const float*>(tensor.data()); };
  for (int row = 0; row < 15; ++row) {
    for (int c = 0; c < 8; ++c)
      EXPECT_FLOAT_EQ(numbers(heads.set(0)[0])[row * 8 + c], numbers(heads.set(0)[2])[row * 16 + 12 + c % 4]) << row << " " << c;
    for (int f = 0; f < 16; ++f) {
      const float gate = numbers(halves.set(0)[1])[row * 32 + f], up = numbers(halves.set(0)[1])[row * 32 + 16 + f];
      EXPECT_NEAR(numbers(halves.set(0)[0])[row * 16 + f], gate / (1 + std::exp(-gate)) * up, 1e-5) << row << " " << f;
    }
  }
}

}  // namespace
}  // namespace nsp::bench
