// Small random models and batches. Values are floats widened to double, so that nsp and the reference start from equal numbers.
#pragma once

#include <random>

#include "core/model/spec.hpp"
#include "tests/model/reference_transformer.hpp"

namespace nsp::test {

// Odd sizes everywhere: a vocabulary that is padded, heads x head_dim != hidden, ffn != 4 hidden.
ModelSpec small_spec();
Values normal_values(std::size_t count, double std, std::mt19937& random);
// Every tensor of the model, norms and biases random too.
Params random_params(const ModelSpec& spec, std::mt19937& random);
// Documents of random length, some targets not counted, positions counting through the sequence.
ReferenceBatch random_batch(const ModelSpec& spec, int64_t batch, int64_t tokens, std::mt19937& random);

}  // namespace nsp::test
