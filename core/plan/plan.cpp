#include "core/plan/plan.hpp"

#include <algorithm>
#include <sstream>

#include "nsp/options.hpp"

namespace nsp {

std::vector<double> JobPlan::weights() const {
  std::vector<double> w;
  for (int64_t share : shares) w.push_back(static_cast<double>(share) / static_cast<double>(global_batch));
  return w;
}

int64_t JobPlan::first_sequence(int replica) const {
  int64_t first = 0;
  for (int m = 0; m < replica; ++m) first += shares[static_cast<std::size_t>(m)];
  return first;
}

BatchShape JobPlan::shape(int position, const HeadShare& heads, bool splits_heads) const {
  BatchShape s;
  s.micro_batch = micro_batch;
  s.first_token = parallel.token_cuts[static_cast<std::size_t>(position)];
  s.local_tokens = parallel.token_cuts[static_cast<std::size_t>(position) + 1] - s.first_token;
  s.tokens = context;
  s.local_heads = heads.query_heads();
  s.local_kv_heads = heads.kv_heads();
  s.splits_heads = splits_heads;
  s.dtype = dtype;
  return s;
}

std::vector<Range> JobPlan::owned(const ParamTable& table, int position) const {
  std::vector<Range> out;
  for (std::size_t s = 0; s < table.segments().size(); ++s) {
    const std::vector<int64_t> cuts = owner_cuts(table.segments()[s].size, replica_size);
    out.push_back({static_cast<int>(s), cuts[static_cast<std::size_t>(position)], cuts[static_cast<std::size_t>(position) + 1]});
  }
  return out;
}

std::string JobPlan::text() const {
  std::string list;
  for (const int64_t share : shares) {
    if (!list.empty()) list += ' ';
    list += std::to_string(share);
  }
  return text_with(list) + "memory_budget = " + std::to_string(memory_budget) + "\n";
}

std::string JobPlan::short_text() const {
  return text_with(shares_text(shares));
}

std::string JobPlan::text_with(const std::string& shares_text) const {
  std::ostringstream out;
  out << "ranks = " << ranks << "\nreplicas = " << replicas << "\nreplica_size = " << replica_size << "\naxes =";
  for (const Axis& axis : parallel.axes) out << ' ' << axis.name << ':' << axis.degree;
  out << "\ntoken_cuts =";
  for (int64_t cut : parallel.token_cuts) out << ' ' << cut;
  out << "\nglobal_batch = " << global_batch << "\ncontext = " << context << "\nmicro_batch = " << micro_batch
      << "\nshares = " << shares_text;
  out << "\ndtype = " << name_of(dtype) << "\nthreads = " << threads << "\nbackend = " << backend << "\nplugins = " << plugins << "\n";
  return out.str();
}

std::string by_rank(const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end < values.size() && values[end] == values[i]) ++end;
    if (i == 0 && end == values.size()) return values[i];
    text.append(text.empty() ? "" : " ").append(values[i]).append("*").append(std::to_string(end - i));
    i = end;
  }
  return text;
}

std::string value_of_rank(const std::string& text, int rank) {
  std::istringstream in(text);
  int64_t first = 0;
  for (std::string run; in >> run;) {
    const std::size_t star = run.find('*');
    if (star == std::string::npos) return run;
    first += parse::integer(run.substr(star + 1));
    if (rank < first) return run.substr(0, star);
  }
  return "";
}

DType compute_dtype(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::bf16})
    if (name == name_of(dtype)) return dtype;
  throw Error(ErrorKind::usage, "train.dtype = " + name + " is not known. Weights and activations are fp32 or bf16. Give one of them.");
}

std::map<std::string, std::string> plan_values(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(" =");
    if (at != std::string::npos) values[line.substr(0, at)] = at + 3 <= line.size() ? line.substr(at + 3) : "";
  }
  return values;
}

std::string shares_text(const std::vector<int64_t>& shares) {
  constexpr std::size_t most_listed = 16;
  std::string text;
  for (std::size_t i = 0; i < shares.size();) {
    std::size_t next = i + 1;
    if (shares.size() > most_listed) {
      while (next < shares.size() && shares[next] == shares[i]) ++next;
      if (!text.empty()) text += ", ";
      text += std::to_string(next - i) + " of " + std::to_string(shares[i]);
    } else {
      if (!text.empty()) text += ' ';
      text += std::to_string(shares[i]);
    }
    i = next;
  }
  return text;
}

std::vector<int64_t> equal_shares(int64_t global_batch, int replicas) {
  if (global_batch < replicas)
    throw Error(ErrorKind::usage,
                "train.global_batch = " + std::to_string(global_batch) + " is fewer sequences than there are replicas (" +
                    std::to_string(replicas) + "). Every replica needs at least one sequence a step. Raise train.global_batch to " +
                    std::to_string(replicas) + " or more, start fewer ranks, or put more ranks into a replica (--autosp.degree).");
  std::vector<int64_t> shares(static_cast<std::size_t>(replicas), global_batch / replicas);
  for (int64_t m = 0; m < global_batch % replicas; ++m) ++shares[static_cast<std::size_t>(m)];
  return shares;
}

int64_t auto_micro_batch(int64_t share, int64_t local_tokens) {
  // Matrix products reach their full speed at a few thousand rows; more rows only cost memory.
  constexpr int64_t target_tokens = 2048;
  const int64_t most = std::clamp<int64_t>(target_tokens / std::max<int64_t>(local_tokens, 1), 1, share);
  const int64_t steps = (share + most - 1) / most;
  return (share + steps - 1) / steps;
}

}  // namespace nsp
