// Bad arguments: refused at the call with a text that names the op and the tensor; nothing is enqueued.
#include "cases.hpp"

namespace nsp_ops {

namespace {

nsp_tensor f32(std::vector<int64_t> shape, void* data, int64_t gap = 0) {
  nsp_tensor t{};
  t.data = data;
  t.dtype = NSP_F32;
  t.rank = static_cast<int32_t>(shape.size());
  const std::vector<int64_t> strides = gapped_strides(shape, gap);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    t.size[d] = shape[d];
    t.stride[d] = strides[d];
  }
  return t;
}

nsp_tensor typed(std::vector<int64_t> shape, void* data, nsp_dtype dtype) {
  nsp_tensor t = f32(std::move(shape), data);
  t.dtype = dtype;
  return t;
}

struct Refusal {
  const char* name;
  std::function<nsp_status(Bench&, float*)> call;  // with 4,096 bytes of scratch memory
  std::vector<const char*> text;                   // all of these are in the message
};

const std::vector<Refusal>& refused() {
  // Long because it is a table: a row for each mistake.
  static const std::vector<Refusal> all = {
      {"size_of_struct",
       [](Bench& b, float* p) {
         nsp_scale_args a{};
         a.x = f32({4}, p);
         a.size = 8;
         return b.ops().scale(b.stream(), &a);
       },
       {"scale", "struct"}},
      {"null_struct", [](Bench& b, float*) { return b.ops().scale(b.stream(), nullptr); }, {"scale"}},
      {"shape",
       [](Bench& b, float* p) {
         nsp_gelu_forward_args a{};
         a.out = f32({2, 3}, p);
         a.x = f32({2, 4}, p);
         return b.call(b.ops().gelu_forward, a);
       },
       {"gelu_forward", "x", "[2,4]", "C = 3"}},
      {"rank",
       [](Bench& b, float* p) {
         nsp_gelu_forward_args a{};
         a.out = f32({6}, p);
         a.x = f32({2, 3}, p);
         return b.call(b.ops().gelu_forward, a);
       },
       {"gelu_forward", "out", "rank 1"}},
      {"dtype",
       [](Bench& b, float* p) {
         nsp_axpy_args a{};
         a.y = f32({6}, p);
         a.x = typed({6}, p, NSP_F64);
         return b.call(b.ops().axpy, a);
       },
       {"axpy", "x", "fp64", "fp32"}},
      {"tokens_dtype",
       [](Bench& b, float* p) {
         nsp_embedding_forward_args a{};
         a.out = f32({2, 3}, p);
         a.tokens = typed({2}, p, NSP_I64);
         a.table = f32({4, 3}, p);
         return b.call(b.ops().embedding_forward, a);
       },
       {"embedding_forward", "tokens", "int64", "int32"}},
      {"stride",
       [](Bench& b, float* p) {
         nsp_scale_args a{};
         a.x = f32({4}, p);
         a.x.stride[0] = 2;
         return b.call(b.ops().scale, a);
       },
       {"scale", "x", "stride 2"}},
      {"no_data",
       [](Bench& b, float*) {
         nsp_scale_args a{};
         a.x = f32({4}, nullptr);
         return b.call(b.ops().scale, a);
       },
       {"scale", "x", "no data"}},
      {"negative_size",
       [](Bench& b, float* p) {
         nsp_scale_args a{};
         a.x = f32({-4}, p);
         return b.call(b.ops().scale, a);
       },
       {"scale", "x", "negative"}},
      {"alignment",
       [](Bench& b, float* p) {
         nsp_scale_args a{};
         a.x = f32({4}, reinterpret_cast<char*>(p) + 2);
         return b.call(b.ops().scale, a);
       },
       {"scale", "x", "aligned"}},
      {"missing_tensor",
       [](Bench& b, float* p) {
         nsp_layernorm_forward_args a{};
         a.out = a.x = f32({2, 3}, p);
         a.weight = f32({3}, p);
         a.mean = a.rstd = f32({2}, p);
         return b.call(b.ops().layernorm_forward, a);
       },
       {"layernorm_forward", "bias"}},
      {"position_table_alone",
       [](Bench& b, float* p) {
         nsp_embedding_forward_args a{};
         a.out = f32({2, 3}, p);
         a.tokens = typed({2}, p, NSP_I32);
         a.table = a.position_table = f32({4, 3}, p);
         return b.call(b.ops().embedding_forward, a);
       },
       {"embedding_forward", "positions"}},
      {"embedding_backward_nothing",
       [](Bench& b, float* p) {
         nsp_embedding_backward_args a{};
         a.dout = f32({2, 3}, p);
         a.tokens = typed({2}, p, NSP_I32);
         return b.call(b.ops().embedding_backward, a);
       },
       {"embedding_backward", "dtable"}},
      {"inner_size",
       [](Bench& b, float* p) {
         nsp_matmul_args a{};
         a.out = f32({2, 3}, p);
         a.a = f32({2, 4}, p);
         a.b = f32({5, 3}, p);
         return b.call(b.ops().matmul, a);
       },
       {"matmul", "b", "K = 4"}},
      {"transposed_size",
       [](Bench& b, float* p) {
         nsp_matmul_args a{};
         a.out = f32({2, 3}, p);
         a.a = f32({2, 4}, p);
         a.b = f32({4, 3}, p);
         a.transpose_a = 1;
         return b.call(b.ops().matmul, a);
       },
       {"matmul", "a (transposed)", "M = 2"}},
      {"bias_and_accumulate",
       [](Bench& b, float* p) {
         nsp_matmul_args a{};
         a.out = f32({2, 3}, p);
         a.a = f32({2, 4}, p);
         a.b = f32({4, 3}, p);
         a.bias = f32({3}, p);
         a.accumulate = 1;
         return b.call(b.ops().matmul, a);
       },
       {"matmul", "bias", "accumulate"}},
      {"overlapping_rows",
       [](Bench& b, float* p) {
         nsp_matmul_args a{};
         a.out = f32({2, 3}, p);
         a.a = f32({2, 4}, p, -2);
         a.b = f32({4, 3}, p);
         return b.call(b.ops().matmul, a);
       },
       {"matmul", "a", "overlap"}},
      {"odd_rope",
       [](Bench& b, float* p) {
         nsp_rope_args a{};
         a.out = a.x = f32({1, 2, 1, 3}, p);
         a.positions = typed({1, 2}, p, NSP_I32);
         a.theta = 10000.0f;
         return b.call(b.ops().rope, a);
       },
       {"rope", "D is 3"}},
      {"heads",
       [](Bench& b, float* p) {
         nsp_attention_forward_args a{};
         a.q = a.out = f32({1, 2, 3, 4}, p);
         a.lse = f32({1, 3, 2}, p);
         a.k = a.v = f32({1, 2, 2, 4}, p);
         return b.call(b.ops().attention_forward, a);
       },
       {"attention_forward", "heads"}},
      {"lse_shape",
       [](Bench& b, float* p) {
         nsp_attention_backward_args a{};
         a.q = a.dq = a.dout = a.out = f32({1, 2, 3, 4}, p);
         a.k = a.v = a.dk = a.dv = f32({1, 2, 3, 4}, p);
         a.lse = f32({1, 2, 3}, p);
         return b.call(b.ops().attention_backward, a);
       },
       {"attention_backward", "lse"}},
      {"negative_window",
       [](Bench& b, float* p) {
         nsp_attention_forward_args a{};
         a.q = a.out = a.k = a.v = f32({1, 2, 1, 4}, p);
         a.lse = f32({1, 1, 2}, p);
         a.window = -1;
         return b.call(b.ops().attention_forward, a);
       },
       {"attention_forward", "window"}},
      {"vocabulary",
       [](Bench& b, float* p) {
         nsp_classifier_args a{};
         a.logits = f32({2, 3}, p);
         a.targets = typed({2}, p, NSP_I32);
         a.losses = f32({2}, p);
         a.vocabulary = 4;
         return b.call(b.ops().classifier, a);
       },
       {"classifier", "vocabulary is 4"}},
      {"copy_dtypes",
       [](Bench& b, float* p) {
         nsp_copy_args a{};
         a.out = f32({2}, p);
         a.x = typed({2}, p, NSP_I32);
         return b.call(b.ops().copy, a);
       },
       {"copy", "out"}},
      {"cast_same",
       [](Bench& b, float* p) {
         nsp_cast_args a{};
         a.out = a.x = f32({2}, p);
         return b.call(b.ops().cast, a);
       },
       {"cast", "bf16"}},
      {"sum_dtype",
       [](Bench& b, float* p) {
         nsp_sum_args a{};
         a.out = f32({1}, p);
         a.x = f32({4}, p);
         return b.call(b.ops().sum, a);
       },
       {"sum", "out", "fp64"}},
      {"sum_shape",
       [](Bench& b, float* p) {
         nsp_sum_of_squares_args a{};
         a.out = typed({2}, p, NSP_F64);
         a.x = f32({4}, p);
         return b.call(b.ops().sum_of_squares, a);
       },
       {"sum_of_squares", "out"}},
      {"distribution",
       [](Bench& b, float* p) {
         nsp_random_fill_args a{};
         a.x = f32({4}, p);
         a.distribution = 2;
         return b.call(b.ops().random_fill, a);
       },
       {"random_fill", "distribution"}},
      {"moments",
       [](Bench& b, float* p) {
         nsp_adamw_args a{};
         a.weight = a.gradient = a.moment1 = f32({4}, p);
         a.moment2 = f32({5}, p);
         return b.call(b.ops().adamw, a);
       },
       {"adamw", "moment2", "[5]"}},
      {"momentum",
       [](Bench& b, float* p) {
         nsp_sgd_args a{};
         a.weight = a.gradient = f32({4}, p);
         a.momentum = f32({3}, p);
         return b.call(b.ops().sgd, a);
       },
       {"sgd", "momentum"}},
  };
  return all;
}

struct RefusalRun {
  const Backend* backend;
  const Refusal* refusal;
};

std::vector<RefusalRun> runs() {
  std::vector<RefusalRun> result;
  for (const Backend& backend : backends()) {
    for (const Refusal& refusal : refused()) result.push_back({&backend, &refusal});
  }
  return result;
}

class Arguments : public testing::TestWithParam<RefusalRun> {};

TEST_P(Arguments, AreRefused) {
  const RefusalRun& run = GetParam();
  Bench bench(*run.backend);
  const Array before = random_array({1024}, 1);
  const nsp_tensor memory = bench.in(before);
  EXPECT_EQ(run.refusal->call(bench, static_cast<float*>(memory.data)), NSP_ERR_ARGUMENT);
  const std::string text = bench.error();
  for (const char* part : run.refusal->text) EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
  expect_near(bench.read(memory), before, 0.0, "memory of a refused op");
}

INSTANTIATE_TEST_SUITE_P(All, Arguments, testing::ValuesIn(runs()), [](const testing::TestParamInfo<RefusalRun>& info) {
  return info.param.backend->name + "_" + info.param.refusal->name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Arguments);

}  // namespace
}  // namespace nsp_ops
