// Small random models and batches. Values are floats widened to double, so that nsp and the reference start from equal numbers.
#pragma once

#include <ostream>
#include <random>
#include <vector>

#include "core/model/spec.hpp"
#include "tests/model/reference_transformer.hpp"

namespace nsp::test {

// Odd sizes everywhere: a vocabulary that is padded, heads x head_dim != hidden, ffn != 4 hidden.
ModelSpec small_spec();
// The same of the family llama, with 4 heads in 2 groups, no tied head, no bias.
ModelSpec small_llama();
// Both families, each also with what the other one has by default: head of its own or tied, bias of q, k, v or none.
struct Variant {
  const char* name;
  ModelSpec spec;
};
std::vector<Variant> variants();
inline void PrintTo(const Variant& variant, std::ostream* out) {
  *out << variant.name;
}
Values normal_values(std::size_t count, double std, std::mt19937& random);
// Every tensor of the model, norms and biases random too.
Params random_params(const ModelSpec& spec, std::mt19937& random);
// Documents of random length, some targets not counted, positions counting through the sequence.
ReferenceBatch random_batch(const ModelSpec& spec, int64_t batch, int64_t tokens, std::mt19937& random);

}  // namespace nsp::test
