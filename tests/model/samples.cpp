#include "tests/model/samples.hpp"

#include "core/model/transformer.hpp"

namespace nsp::test {

ModelSpec small_spec() {
  ModelSpec spec;
  spec.layers = 2;
  spec.hidden = 20;
  spec.heads = 2;
  spec.head_dim = 6;
  spec.ffn = 28;
  spec.vocab = 37;
  spec.context = 16;
  return spec.completed();
}

ModelSpec small_llama() {
  ModelSpec spec = small_spec();
  spec.family = "llama";
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.rope_theta = 100;  // so that all channels turn visibly within a few tokens
  spec.tied = spec.qkv_bias = false;
  return spec;
}

std::vector<Variant> variants() {
  ModelSpec gpt2 = small_spec(), llama = small_llama();
  gpt2.tied = gpt2.qkv_bias = false;
  gpt2.heads = 3;
  gpt2.kv_heads = 1;
  llama.tied = llama.qkv_bias = true;
  llama.kv_heads = 4;
  return {{"gpt2", small_spec()}, {"gpt2_untied", gpt2}, {"llama", small_llama()}, {"llama_tied", llama}};
}

Values normal_values(std::size_t count, double std, std::mt19937& random) {
  std::normal_distribution<double> normal(0, std);
  Values values(count);
  for (double& v : values) v = static_cast<float>(normal(random));
  return values;
}

Params random_params(const ModelSpec& spec, std::mt19937& random) {
  Params params;
  const Transformer model(spec);
  for (const Param& p : model.table().params()) {
    Values values = normal_values(static_cast<std::size_t>(p.elements()), 0.3, random);
    if (p.role == Role::norm)
      for (double& v : values) v = static_cast<float>(v + 1);
    params[p.name] = std::move(values);
  }
  return params;
}

ReferenceBatch random_batch(const ModelSpec& spec, int64_t batch, int64_t tokens, std::mt19937& random) {
  ReferenceBatch out;
  out.batch = batch;
  out.tokens = tokens;
  std::uniform_int_distribution<int32_t> token(0, static_cast<int32_t>(spec.vocab) - 1);
  std::uniform_int_distribution<int> die(0, 5);
  for (int64_t b = 0; b < batch; ++b) {
    int32_t start = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      if (die(random) == 0) start = static_cast<int32_t>(t);
      out.input.push_back(token(random));
      out.target.push_back(die(random) == 0 ? -1 : token(random));
      out.position.push_back(static_cast<int32_t>(t));
      out.document_start.push_back(start);
    }
  }
  return out;
}

}  // namespace nsp::test
