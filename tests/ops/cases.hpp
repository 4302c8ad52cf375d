// The table of cases: every op of NSP_OP_LIST has at least one, or Suite.CoversEveryOp fails.
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

inline nsp_tensor absent() {
  return nsp_tensor{};
}

}  // namespace nsp_ops
