// The table of cases: every op of NSP_OP_LIST has at least one in each dtype that a backend supports, or Suite.CoversEveryOp fails.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench.hpp"

namespace nsp_ops {

struct Case {
  nsp_op op;
  std::string name;  // unique; letters, digits and underscores
  std::function<void(Bench&)> run;
  nsp_dtype dtype = NSP_F32;  // what supports() is asked for
};
using Cases = std::vector<Case>;

void add_embedding_cases(Cases& cases);
void add_norm_cases(Cases& cases);
void add_matmul_cases(Cases& cases);
void add_rope_cases(Cases& cases);
void add_attention_cases(Cases& cases);
void add_activation_cases(Cases& cases);
void add_classifier_cases(Cases& cases);
void add_copy_cases(Cases& cases);
void add_bits_cases(Cases& cases);
void add_reduce_cases(Cases& cases);
void add_random_cases(Cases& cases);

const Cases& all_cases();

// The dtypes that most ops compute in, what names of their cases end in, and the rounding of a store (a half of the last
// place, relative to the number).
constexpr nsp_dtype kTypes[] = {NSP_F32, NSP_BF16};
inline std::string suffix(nsp_dtype dtype) {
  return dtype == NSP_BF16 ? "_bf16" : "";
}
inline Bound bound(double sums, nsp_dtype dtype) {
  return Bound(sums, dtype == NSP_BF16 ? 0x1p-8 : 0.0);
}

inline nsp_tensor absent() {
  return nsp_tensor{};
}

}  // namespace nsp_ops
