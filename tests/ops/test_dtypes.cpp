// Mixtures of dtypes that nsp/backend.h does not name: refused at the call with a text that says what was expected.
#include "cases.hpp"

namespace nsp_ops {

namespace {

nsp_tensor tensor(const std::vector<int64_t>& shape, nsp_dtype dtype, void* data) {
  nsp_tensor t{};
  t.data = data;
  t.dtype = dtype;
  t.rank = static_cast<int32_t>(shape.size());
  const std::vector<int64_t> strides = gapped_strides(shape, 0);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    t.size[d] = shape[d];
    t.stride[d] = strides[d];
  }
  return t;
}

struct Mixture {
  const char* name;
  std::function<nsp_status(Bench&, void*)> call;  // with 4,096 bytes of memory
  std::vector<const char*> text;                  // all of these are in the message
};

nsp_status layernorm(Bench& bench, void* p, nsp_dtype weight, nsp_dtype mean) {
  nsp_layernorm_forward_args a{};
  a.out = a.x = tensor({2, 3}, NSP_BF16, p);
  a.weight = a.bias = tensor({3}, weight, p);
  a.mean = a.rstd = tensor({2}, mean, p);
  return bench.call(bench.ops().layernorm_forward, a);
}

nsp_status layernorm_backward(Bench& bench, void* p) {
  nsp_layernorm_backward_args a{};
  a.dx = a.dout = a.x = tensor({2, 3}, NSP_BF16, p);
  a.weight = a.dweight = a.dbias = tensor({3}, NSP_BF16, p);
  a.mean = a.rstd = tensor({2}, NSP_F32, p);
  return bench.call(bench.ops().layernorm_backward, a);
}

nsp_status matmul(Bench& bench, void* p, nsp_dtype out, nsp_dtype a_type, nsp_dtype b_type, bool accumulate, nsp_dtype bias) {
  nsp_matmul_args a{};
  a.out = tensor({2, 3}, out, p);
  a.a = tensor({2, 4}, a_type, p);
  a.b = tensor({4, 3}, b_type, p);
  if (!accumulate) a.bias = tensor({3}, bias, p);
  a.accumulate = accumulate;
  return bench.call(bench.ops().matmul, a);
}

nsp_status attention(Bench& bench, void* p, nsp_dtype k, nsp_dtype lse) {
  nsp_attention_forward_args a{};
  a.q = a.out = a.v = tensor({1, 2, 1, 4}, NSP_BF16, p);
  a.k = tensor({1, 2, 1, 4}, k, p);
  a.lse = tensor({1, 1, 2}, lse, p);
  return bench.call(bench.ops().attention_forward, a);
}

nsp_status classifier(Bench& bench, void* p, nsp_dtype logits, nsp_dtype losses) {
  nsp_classifier_args a{};
  a.logits = tensor({2, 3}, logits, p);
  a.targets = tensor({2}, NSP_I32, p);
  a.losses = tensor({2}, losses, p);
  a.vocabulary = 3;
  return bench.call(bench.ops().classifier, a);
}

nsp_status axpy(Bench& bench, void* p, nsp_dtype y, nsp_dtype x) {
  nsp_axpy_args a{};
  a.y = tensor({4}, y, p);
  a.x = tensor({4}, x, p);
  return bench.call(bench.ops().axpy, a);
}

const std::vector<Mixture>& mixtures() {
  // Long because it is a table: a row for each mixture.
  static const std::vector<Mixture> all = {
      {"norm_weight", [](Bench& b, void* p) { return layernorm(b, p, NSP_F32, NSP_F32); }, {"layernorm_forward", "weight is fp32", "bf16"}},
      {"norm_mean", [](Bench& b, void* p) { return layernorm(b, p, NSP_BF16, NSP_BF16); }, {"layernorm_forward", "mean is bf16", "fp32"}},
      {"norm_dweight", layernorm_backward, {"layernorm_backward", "dweight is bf16", "fp32"}},
      {"matmul_factors",
       [](Bench& b, void* p) { return matmul(b, p, NSP_BF16, NSP_BF16, NSP_F32, false, NSP_BF16); },
       {"matmul", "b is fp32", "bf16"}},
      {"matmul_narrower",
       [](Bench& b, void* p) { return matmul(b, p, NSP_BF16, NSP_F32, NSP_F32, false, NSP_F32); },
       {"matmul", "out is bf16", "fp32"}},
      {"matmul_accumulate",
       [](Bench& b, void* p) { return matmul(b, p, NSP_BF16, NSP_BF16, NSP_BF16, true, NSP_BF16); },
       {"matmul", "out is bf16", "fp32"}},
      {"matmul_bias",
       [](Bench& b, void* p) { return matmul(b, p, NSP_F32, NSP_BF16, NSP_BF16, false, NSP_F32); },
       {"matmul", "bias is fp32", "bf16"}},
      {"attention_key", [](Bench& b, void* p) { return attention(b, p, NSP_F32, NSP_F32); }, {"attention_forward", "k is fp32", "bf16"}},
      {"attention_lse", [](Bench& b, void* p) { return attention(b, p, NSP_BF16, NSP_BF16); }, {"attention_forward", "lse is bf16"}},
      {"losses", [](Bench& b, void* p) { return classifier(b, p, NSP_BF16, NSP_BF16); }, {"classifier", "losses is bf16", "fp32"}},
      {"logits", [](Bench& b, void* p) { return classifier(b, p, NSP_F64, NSP_F32); }, {"classifier", "logits is fp64", "fp32 or bf16"}},
      {"axpy_narrower", [](Bench& b, void* p) { return axpy(b, p, NSP_BF16, NSP_F32); }, {"axpy", "y is bf16", "fp32"}},
      {"bias_gradient",
       [](Bench& b, void* p) {
         nsp_bias_gradient_args a{};
         a.dout = tensor({2, 3}, NSP_BF16, p);
         a.dbias = tensor({3}, NSP_BF16, p);
         return b.call(b.ops().bias_gradient, a);
       },
       {"bias_gradient", "dbias is bf16", "fp32"}},
      {"position_table",
       [](Bench& b, void* p) {
         nsp_embedding_forward_args a{};
         a.out = tensor({2, 3}, NSP_BF16, p);
         a.tokens = a.positions = tensor({2}, NSP_I32, p);
         a.table = tensor({4, 3}, NSP_BF16, p);
         a.position_table = tensor({4, 3}, NSP_F32, p);
         return b.call(b.ops().embedding_forward, a);
       },
       {"embedding_forward", "position_table is fp32", "bf16"}},
      {"dtable",
       [](Bench& b, void* p) {
         nsp_embedding_backward_args a{};
         a.dout = tensor({2, 3}, NSP_BF16, p);
         a.tokens = tensor({2}, NSP_I32, p);
         a.dtable = tensor({4, 3}, NSP_BF16, p);
         return b.call(b.ops().embedding_backward, a);
       },
       {"embedding_backward", "dtable is bf16", "fp32"}},
      {"rope",
       [](Bench& b, void* p) {
         nsp_rope_args a{};
         a.x = tensor({1, 2, 1, 4}, NSP_BF16, p);
         a.out = tensor({1, 2, 1, 4}, NSP_F32, p);
         a.positions = tensor({1, 2}, NSP_I32, p);
         a.theta = 10000.0f;
         return b.call(b.ops().rope, a);
       },
       {"rope", "out is fp32", "bf16"}},
      {"gelu",
       [](Bench& b, void* p) {
         nsp_gelu_backward_args a{};
         a.dx = a.dout = tensor({2, 3}, NSP_BF16, p);
         a.x = tensor({2, 3}, NSP_F32, p);
         return b.call(b.ops().gelu_backward, a);
       },
       {"gelu_backward", "x is fp32", "bf16"}},
      {"lerp",
       [](Bench& b, void* p) {
         nsp_lerp_args a{};
         a.out = a.base = a.x = tensor({4}, NSP_F32, p);
         a.origin = tensor({4}, NSP_BF16, p);
         return b.call(b.ops().lerp, a);
       },
       {"lerp", "origin is bf16", "fp32"}},
      {"adamw",
       [](Bench& b, void* p) {
         nsp_adamw_args a{};
         a.weight = a.gradient = a.moment1 = a.moment2 = tensor({4}, NSP_BF16, p);
         return b.call(b.ops().adamw, a);
       },
       {"adamw", "weight is bf16", "fp32"}},
      {"sgd",
       [](Bench& b, void* p) {
         nsp_sgd_args a{};
         a.weight = tensor({4}, NSP_F32, p);
         a.gradient = tensor({4}, NSP_BF16, p);
         return b.call(b.ops().sgd, a);
       },
       {"sgd", "gradient is bf16", "fp32"}},
  };
  return all;
}

TEST(Dtypes, MixturesAreRefused) {
  for (const Backend& backend : backends()) {
    for (const Mixture& mixture : mixtures()) {
      SCOPED_TRACE(backend.name + ": " + mixture.name);
      Bench bench(backend);
      const Array before = random_array({1024}, 1);
      const nsp_tensor memory = bench.in(before);
      EXPECT_EQ(mixture.call(bench, memory.data), NSP_ERR_ARGUMENT);
      const std::string text = bench.error();
      for (const char* part : mixture.text) EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
      expect_near(bench.read(memory), before, 0.0, "memory of a refused op");
    }
  }
}

}  // namespace
}  // namespace nsp_ops
