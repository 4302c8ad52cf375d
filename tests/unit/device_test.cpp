// The C++ owners over a backend's tables: what they check, what they pass on, and what they say when it fails.
#include "nsp/device.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/device/byte_text.hpp"
#include "tests/support/toy_backend.hpp"

namespace nsp {
namespace {

using test::toy_arguments;
using test::toy_backend;
using test::toy_last_op;

// The error that a call throws, as its text; fails if the kind is another.
template <class Call>
std::string error_of(ErrorKind kind, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DeviceTest : public ::testing::Test {
 protected:
  void TearDown() override {
    test::toy_set_status(NSP_OK);
    test::toy_set_event_failure(false);
  }
  // Views for checks that never reach the data.
  TensorView f32(std::initializer_list<int64_t> sizes) { return TensorView(dummy_, DType::f32, sizes); }
  TensorView i32(std::initializer_list<int64_t> sizes) { return TensorView(dummy_, DType::i32, sizes); }

  Device device_{toy_backend(), "toy_backend", 0, 1};
  Stream stream_{device_};
  Ops ops_{stream_};
  alignas(256) char dummy_[4096] = {};
};

TEST(ByteText, UnitsAndRounding) {
  EXPECT_EQ(byte_text(0), "0 B");
  EXPECT_EQ(byte_text(1023), "1023 B");
  EXPECT_EQ(byte_text(1536), "1.5 KiB");
  EXPECT_EQ(byte_text((int64_t{1} << 30) - 1), "1.0 GiB");
  EXPECT_EQ(byte_text(int64_t{24} << 30), "24.0 GiB");
  EXPECT_EQ(byte_text(-2048), "-2.0 KiB");
}

TEST_F(DeviceTest, InfoAndSupport) {
  const DeviceInfo info = device_.info();
  EXPECT_EQ(info.name, "toy");
  EXPECT_EQ(info.kind, "cpu");
  EXPECT_TRUE(device_.host_addressable());
  EXPECT_EQ(info.memory_total, 1 << 20);
  EXPECT_TRUE(device_.supports(NSP_OP_axpy, DType::f32));
  EXPECT_FALSE(device_.supports(NSP_OP_rope, DType::f32));
  EXPECT_FALSE(device_.supports(NSP_OP_axpy, DType::bf16));
}

TEST_F(DeviceTest, OpenFailureHasTheBackendsReason) {
  const std::string broken = error_of(ErrorKind::device, [] { Device(toy_backend(), "toy_backend", 1, 1); });
  EXPECT_TRUE(contains(broken, "toy device 1 is broken")) << broken;
  const std::string absent = error_of(ErrorKind::device, [] { Device(toy_backend(), "toy_backend", 2, 1); });
  EXPECT_TRUE(contains(absent, "has no device 2") && contains(absent, "reports 2")) << absent;
}

TEST_F(DeviceTest, AnotherAbiIsRefused) {
  nsp_backend table = *toy_backend();
  table.abi_major = NSP_ABI_MAJOR + 1;
  EXPECT_TRUE(contains(error_of(ErrorKind::plugin, [&] { Device(&table, "old", 0, 1); }), "backend old"));
}

TEST_F(DeviceTest, BufferNamesItselfWhenMemoryIsShort) {
  Buffer held(device_, 512 << 10, MemoryKind::device, "weights");
  const std::string text = error_of(ErrorKind::memory, [&] { Buffer(device_, 3 << 20, MemoryKind::device, "activations"); });
  EXPECT_TRUE(contains(text, "'activations' of 3.0 MiB")) << text;
  EXPECT_TRUE(contains(text, "512.0 KiB of 1.0 MiB")) << text;
  EXPECT_TRUE(contains(text, "the toy says no")) << text;
}

TEST_F(DeviceTest, BufferMovesAndReturnsItsMemory) {
  {
    Buffer a(device_, 1000, MemoryKind::device, "a");
    void* data = a.data();
    Buffer b = std::move(a);
    EXPECT_EQ(b.data(), data);
    EXPECT_EQ(a.data(), nullptr);
    b = Buffer(device_, 2000, MemoryKind::pinned, "b");
    EXPECT_EQ(b.bytes(), 2000);
    EXPECT_EQ(device_.info().memory_free, (1 << 20) - 2000);
  }
  EXPECT_EQ(device_.info().memory_free, 1 << 20);
}

TEST_F(DeviceTest, FailedEventThrowsWithItsName) {
  Event event(device_, "gradients of block 3");
  event.record(stream_);
  EXPECT_TRUE(event.query());
  EXPECT_TRUE(event.wait_for(10));
  test::toy_set_event_failure(true);
  EXPECT_TRUE(contains(error_of(ErrorKind::device, [&] { event.query(); }), "gradients of block 3"));
  EXPECT_TRUE(contains(error_of(ErrorKind::device, [&] { event.wait_for(10); }), "the toy says no"));
}

TEST_F(DeviceTest, MissingOpNamesOpAndBackend) {
  nsp_op_table ops = *toy_backend()->ops;
  nsp_backend table = *toy_backend();
  table.ops = &ops;
  ops.gelu_forward = nullptr;
  ops.size = offsetof(nsp_op_table, sgd);  // an older module: sgd lies beyond its table
  Device device(&table, "elder", 0, 1);
  Stream stream(device);
  for (const auto& [name, call] : {std::pair<const char*, std::function<void()>>{"gelu_forward",
                                                                                 [&] {
                                                                                   Ops(stream).gelu_forward(f32({2, 2}), f32({2, 2}));
                                                                                 }},
                                   {"sgd", [&] { Ops(stream).sgd(f32({4}), f32({4}), {}, {}); }}}) {
    const std::string text = error_of(ErrorKind::device, call);
    EXPECT_TRUE(contains(text, std::string("op ") + name + " is missing in backend elder")) << text;
  }
  EXPECT_NO_THROW(Ops(stream).adamw(f32({4}), f32({4}), f32({4}), f32({4}), {}));
}

TEST_F(DeviceTest, UnsupportedAndRefusedOpsNameTheOp) {
  test::toy_set_status(NSP_ERR_UNSUPPORTED);
  EXPECT_TRUE(contains(error_of(ErrorKind::device, [&] { ops_.scale(f32({4}), 2.0f); }), "op scale does not exist for fp32"));
  test::toy_set_status(NSP_ERR_ARGUMENT);
  const std::string text = error_of(ErrorKind::device, [&] { ops_.scale(f32({4}), 2.0f); });
  EXPECT_TRUE(contains(text, "op scale") && contains(text, "the toy says no")) << text;
}

TEST_F(DeviceTest, WrongShapesAreFoundBeforeTheBackend) {
  const std::vector<std::pair<const char*, std::function<void()>>> wrong = {
      {"matmul",
       [&] {
         ops_.matmul(f32({2, 3}), f32({2, 4}), f32({5, 3}), {});
       }},
      {"matmul",
       [&] {
         ops_.matmul(f32({2, 3}), f32({2, 4}), f32({4, 3}), {.transpose_a = true});
       }},
      {"matmul",
       [&] {
         ops_.matmul(f32({2, 3}), f32({2, 4}), f32({4, 3}), {.accumulate = true}, f32({3}));
       }},
      {"matmul",
       [&] {
         ops_.matmul(f32({2, 3}), f32({2, 4}), f32({4, 3}), {}, f32({2}));
       }},
      {"matmul",
       [&] {
         ops_.matmul(i32({2, 3}), f32({2, 4}), f32({4, 3}), {});
       }},
      {"matmul",
       [&] {
         ops_.matmul(TensorView(dummy_, DType::f32, {2, 3}, {1, 2}), f32({2, 4}), f32({4, 3}), {});
       }},
      {"matmul",
       [&] {
         ops_.matmul(TensorView(nullptr, DType::f32, {2, 3}), f32({2, 4}), f32({4, 3}), {});
       }},
      {"embedding_forward",
       [&] {
         ops_.embedding_forward(f32({4, 8}), i32({4}), f32({10, 8}), i32({4}));
       }},
      {"embedding_forward",
       [&] {
         ops_.embedding_forward(f32({4, 8}), f32({4}), f32({10, 8}));
       }},
      {"layernorm_forward",
       [&] {
         ops_.layernorm_forward(f32({4, 8}), f32({4, 8}), f32({8}), f32({8}), f32({4}), f32({8}), 1e-5f);
       }},
      {"rmsnorm_backward",
       [&] {
         ops_.rmsnorm_backward(f32({4, 8}), f32({4}), f32({4, 8}), f32({4, 8}), f32({8}), f32({4}), false);
       }},
      {"rope",
       [&] {
         ops_.rope(f32({1, 2, 2, 3}), f32({1, 2, 2, 3}), i32({1, 2}), 10000.0f, false);
       }},
      {"attention_forward",
       [&] {
         ops_.attention_forward(f32({1, 4, 3, 8}), f32({1, 3, 4}), f32({1, 4, 3, 8}), f32({1, 4, 2, 8}), f32({1, 4, 2, 8}), {}, {});
       }},
      {"attention_forward",
       [&] {
         ops_.attention_forward(f32({1, 4, 4, 8}), f32({1, 4, 5}), f32({1, 4, 4, 8}), f32({1, 6, 2, 8}), f32({1, 6, 2, 8}), {}, {});
       }},
      {"classifier",
       [&] {
         ops_.classifier(f32({4, 8}), i32({4}), f32({4}), 9, 1.0f, true);
       }},
      {"copy",
       [&] {
         ops_.copy(f32({4, 8}), f32({8, 4}));
       }},
      {"cast", [&] { ops_.cast(f32({8}), f32({8})); }},
      {"axpy", [&] { ops_.axpy(f32({8}), f32({9}), 1.0f); }},
      {"axpy",
       [&] {
         ops_.axpy(f32({2, 4}), f32({2, 4}), 1.0f);
       }},
      {"lerp", [&] { ops_.lerp(f32({8}), f32({8}), f32({8}), f32({7}), 0.5f); }},
      {"sum", [&] { ops_.sum(f32({1}), f32({8}), false); }},
      {"all_finite", [&] { ops_.all_finite(f32({1}), f32({8})); }},
      {"adamw", [&] { ops_.adamw(f32({8}), f32({8}), f32({8}), f32({4}), {}); }},
      {"zero",
       [&] {
         ops_.zero(TensorView(dummy_, DType::f32, {2, 3}, {8, 1}));
       }},
  };
  ops_.scale(f32({4}), 1.0f);
  for (const auto& [name, call] : wrong) {
    const std::string text = error_of(ErrorKind::internal, call);
    EXPECT_TRUE(contains(text, std::string("op ") + name + " ")) << name << ": " << text;
  }
  EXPECT_EQ(toy_last_op(), "scale");  // none of them arrived
}

TEST_F(DeviceTest, ArgumentsArriveInTheirPlaces) {
  float w[4], g[4], m[4], v[4];
  const auto view = [](float* p) { return TensorView(p, DType::f32, {4}); };
  ops_.adamw(view(w), view(g), view(m), view(v), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const auto adamw = toy_arguments<nsp_adamw_args>();
  EXPECT_EQ(toy_last_op(), "adamw");
  EXPECT_EQ(adamw.size, sizeof(nsp_adamw_args));
  EXPECT_TRUE(adamw.weight.data == w && adamw.gradient.data == g && adamw.moment1.data == m && adamw.moment2.data == v);
  EXPECT_EQ(std::vector<float>({adamw.lr, adamw.beta1, adamw.one_minus_beta1, adamw.beta2, adamw.one_minus_beta2, adamw.eps,
                                adamw.weight_decay, adamw.correction1, adamw.correction2, adamw.gradient_scale}),
            std::vector<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));

  ops_.sgd(view(w), view(g), {}, {1, 2, 3, 4, true});
  const auto sgd = toy_arguments<nsp_sgd_args>();
  EXPECT_EQ(sgd.momentum.data, nullptr);
  EXPECT_EQ(std::vector<float>({sgd.lr, sgd.momentum_factor, sgd.weight_decay, sgd.gradient_scale}), std::vector<float>({1, 2, 3, 4}));
  EXPECT_EQ(sgd.nesterov, 1);

  ops_.attention_forward(f32({1, 4, 4, 8}), f32({1, 4, 4}), f32({1, 4, 4, 8}), f32({1, 6, 2, 8}), f32({1, 6, 2, 8}), i32({1, 4}),
                         {.scale = 0.5f, .causal = false, .query_offset = 2, .window = 3});
  const auto attention = toy_arguments<nsp_attention_forward_args>();
  EXPECT_EQ(attention.k.size[1], 6);
  EXPECT_EQ(attention.document_start.rank, 2);
  EXPECT_EQ(attention.scale, 0.5f);
  EXPECT_EQ(attention.causal, 0);
  EXPECT_EQ(attention.query_offset, 2);
  EXPECT_EQ(attention.window, 3);

  ops_.random_fill(view(w), 1, 2, 3, -1.0f, 2.0f, true);
  const auto random = toy_arguments<nsp_random_fill_args>();
  EXPECT_TRUE(random.seed == 1 && random.stream == 2 && random.offset == 3 && random.distribution == 1);
  EXPECT_TRUE(random.low == -1.0f && random.scale == 2.0f);
}

TEST_F(DeviceTest, GradientSumsAreWiderThanBf16) {
  const TensorView bf16(dummy_, DType::bf16, {4, 4}), bf16_vector(dummy_, DType::bf16, {4});
  EXPECT_NO_THROW(ops_.matmul(f32({4, 4}), bf16, bf16, {.accumulate = true}));
  EXPECT_NO_THROW(ops_.matmul(f32({4, 4}), bf16, bf16, {}, bf16_vector));
  EXPECT_NO_THROW(ops_.matmul(bf16, bf16, bf16, {}));
  EXPECT_NO_THROW(ops_.bias_gradient(f32({4}), bf16));
  EXPECT_NO_THROW(ops_.axpy(f32({4}), bf16_vector, 1.0f));
  error_of(ErrorKind::internal, [&] { ops_.matmul(TensorView(dummy_, DType::f64, {4, 4}), bf16, bf16, {}); });
  error_of(ErrorKind::internal, [&] { ops_.matmul(bf16, bf16, bf16, {.accumulate = true}); });
  error_of(ErrorKind::internal, [&] { ops_.matmul(bf16, f32({4, 4}), f32({4, 4}), {}); });
  error_of(ErrorKind::internal, [&] { ops_.bias_gradient(bf16_vector, bf16); });
  error_of(ErrorKind::internal, [&] { ops_.axpy(bf16_vector, f32({4}), 1.0f); });
  error_of(ErrorKind::internal, [&] { ops_.adamw(bf16_vector, bf16_vector, bf16_vector, bf16_vector, {}); });
  error_of(ErrorKind::internal, [&] { ops_.sgd(bf16_vector, bf16_vector, {}, {}); });
}

TEST_F(DeviceTest, ZeroFillsAndEmptyCopiesDoNothing) {
  float x[4] = {1, 2, 3, 4};
  ops_.zero(TensorView(x, DType::f32, {3}));
  EXPECT_EQ(x[2], 0.0f);
  EXPECT_EQ(x[3], 4.0f);
  stream_.copy(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace nsp
