// The model's layers in double precision, written as plainly as the formulas: what nsp's modules are compared with.
// Their gradients are themselves proved by finite differences (reference_test.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace nsp::test {

using Values = std::vector<double>;
using Params = std::map<std::string, Values>;  // under nsp's tensor names

// A layer as two functions. backward returns the gradient of x and adds the parameters' to gradients.
struct Layer {
  std::function<Values(const Params& params, const Values& x)> forward;
  std::function<Values(const Params& params, const Values& x, const Values& dy, Params& gradients)> backward;
};

struct AttentionShape {
  int64_t batch = 0, tokens = 0, heads = 0, head_dim = 0, window = 0;
  std::vector<int32_t> document_start;  // [B,T] or empty
  int64_t kv_heads = 0;                 // 0 = heads
  double rope_theta = 0;                // 0: q and k are not turned
  std::vector<int32_t> position;        // [B,T], where they are
  int64_t groups() const { return kv_heads == 0 ? heads : kv_heads; }
  int64_t row() const { return (heads + 2 * groups()) * head_dim; }
};

// A bias takes part if the parameters have one.
Layer linear_layer(const std::string& name, int64_t rows, int64_t in, int64_t out);
Layer layernorm_layer(const std::string& name, int64_t rows, int64_t channels, double eps);
Layer rmsnorm_layer(const std::string& name, int64_t rows, int64_t channels, double eps);
Layer gelu_layer();
// From gate and up side by side [rows, 2 F] to [rows, F].
Layer swiglu_layer(int64_t rows, int64_t ffn);
// Turns q and k of [B*T, (H + 2 G) D] by their positions.
Layer rope_layer(const AttentionShape& shape);
// From q, k, v side by side [B*T, (H + 2 G) D] to [B*T, H*D].
Layer attention_core_layer(const AttentionShape& shape);
// first, then second.
Layer chain(Layer first, Layer second);
// x + layer(x).
Layer with_residual(Layer layer);

Layer attention_layer(const std::string& name, const AttentionShape& shape, int64_t channels);
Layer mlp_layer(const std::string& name, int64_t rows, int64_t channels, int64_t ffn);
Layer gated_mlp_layer(const std::string& name, int64_t rows, int64_t channels, int64_t ffn);
// shape.rope_theta tells the families apart, here and nowhere else: without one a gpt2 block, with one a llama block.
Layer block_layer(const std::string& name, const AttentionShape& shape, int64_t channels, int64_t ffn, double eps);

}  // namespace nsp::test
