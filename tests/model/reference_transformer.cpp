#include "tests/model/reference_transformer.hpp"

#include <algorithm>
#include <cmath>

namespace nsp::test {
namespace {

Values& gradient(Params& gradients, const Params& params, const std::string& name) {
  Values& g = gradients[name];
  g.resize(params.at(name).size());
  return g;
}

// Softmax and cross-entropy of one row; logits become their gradient. Returns the loss.
double cross_entropy(double* logits, std::size_t vocab, int32_t target) {
  const double largest = *std::max_element(logits, logits + vocab);
  double total = 0;
  for (std::size_t v = 0; v < vocab; ++v) total += std::exp(logits[v] - largest);
  const double lse = largest + std::log(total), loss = target < 0 ? 0 : lse - logits[target];
  for (std::size_t v = 0; v < vocab; ++v)
    logits[v] = target < 0 ? 0 : std::exp(logits[v] - lse) - (static_cast<int32_t>(v) == target ? 1 : 0);
  return loss;
}

}  // namespace

AttentionShape attention_shape(const ModelSpec& spec, const ReferenceBatch& batch) {
  AttentionShape shape{batch.batch, batch.tokens, spec.heads, spec.head_dim, spec.window, batch.document_start, spec.kv_heads};
  if (!spec.is_llama()) return shape;
  shape.rope_theta = spec.rope_theta;
  shape.position = batch.position;
  return shape;
}

HeadResult reference_head(const ModelSpec& spec, const Params& params, const Values& x, const std::vector<int32_t>& target,
                          Params* gradients) {
  const std::size_t N = target.size(), C = static_cast<std::size_t>(spec.hidden), V = static_cast<std::size_t>(spec.vocab);
  const Layer norm = spec.is_llama() ? rmsnorm_layer("head.norm", static_cast<int64_t>(N), spec.hidden, spec.norm_eps)
                                     : layernorm_layer("head.ln", static_cast<int64_t>(N), spec.hidden, spec.norm_eps);
  const std::string classifier = spec.tied ? "embedding.wte" : "head.lm_head.weight";
  const Values& wte = params.at(classifier);
  const Values h = norm.forward(params, x);
  HeadResult result;
  result.logits.resize(N * V);
  Values dh(N * C);
  for (std::size_t n = 0; n < N; ++n) {
    double* row = &result.logits[n * V];
    for (std::size_t v = 0; v < V; ++v)
      for (std::size_t c = 0; c < C; ++c) row[v] += wte[v * C + c] * h[n * C + c];
    Values d(row, row + V);
    result.loss_sum += cross_entropy(d.data(), V, target[n]);
    result.counted += target[n] >= 0;
    if (gradients == nullptr) continue;
    Values& dwte = gradient(*gradients, params, classifier);
    for (std::size_t v = 0; v < V; ++v)
      for (std::size_t c = 0; c < C; ++c) {
        dwte[v * C + c] += d[v] * h[n * C + c];
        dh[n * C + c] += d[v] * wte[v * C + c];
      }
  }
  if (gradients != nullptr) result.dx = norm.backward(params, x, dh, *gradients);
  return result;
}

ReferenceResult reference_step(const ModelSpec& spec, const Params& params, const ReferenceBatch& batch, bool want_gradients) {
  const std::size_t N = batch.input.size(), C = static_cast<std::size_t>(spec.hidden);
  const AttentionShape shape = attention_shape(spec, batch);
  const bool has_wpe = !spec.is_llama();
  const Values& wte = params.at("embedding.wte");
  std::vector<Layer> blocks;
  std::vector<Values> x(1, Values(N * C));
  for (std::size_t n = 0; n < N; ++n)
    for (std::size_t c = 0; c < C; ++c)
      x[0][n * C + c] = wte[static_cast<std::size_t>(batch.input[n]) * C + c] +
                        (has_wpe ? params.at("embedding.wpe")[static_cast<std::size_t>(batch.position[n]) * C + c] : 0);
  for (int64_t l = 0; l < spec.layers; ++l) {
    blocks.push_back(block_layer("blocks." + std::to_string(l), shape, spec.hidden, spec.ffn, spec.norm_eps));
    x.push_back(blocks.back().forward(params, x.back()));
  }
  ReferenceResult result;
  HeadResult head = reference_head(spec, params, x.back(), batch.target, want_gradients ? &result.gradients : nullptr);
  result.loss_sum = head.loss_sum;
  result.counted = head.counted;
  result.logits = std::move(head.logits);
  if (!want_gradients) return result;

  Values g = std::move(head.dx);
  for (int64_t l = spec.layers - 1; l >= 0; --l)
    g = blocks[static_cast<std::size_t>(l)].backward(params, x[static_cast<std::size_t>(l)], g, result.gradients);
  Values& dwte = gradient(result.gradients, params, "embedding.wte");
  Values* dwpe = has_wpe ? &gradient(result.gradients, params, "embedding.wpe") : nullptr;
  for (std::size_t n = 0; n < N; ++n)
    for (std::size_t c = 0; c < C; ++c) {
      dwte[static_cast<std::size_t>(batch.input[n]) * C + c] += g[n * C + c];
      if (has_wpe) (*dwpe)[static_cast<std::size_t>(batch.position[n]) * C + c] += g[n * C + c];
    }
  return result;
}

}  // namespace nsp::test
