#include "plugins/autosp/degree.hpp"

#include <cstdio>

#include "plugins/autosp/head_map.hpp"

namespace nsp {
namespace {

std::string gib(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
  return text;
}

std::vector<int> divisors(int n) {
  std::vector<int> found;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

// Why this degree cannot be, whatever the memory; empty if it can. WHY and WHAT TO DO are kept apart, since `auto` lists whys only.
struct Refusal {
  std::string why, cure;
};

Refusal shape_refusal(const ParallelQuestion& q, int degree) {
  const std::string d = std::to_string(degree);
  if (degree > q.ranks || q.ranks % degree != 0) {
    std::string choices;
    for (int choice : divisors(q.ranks)) choices += (choices.empty() ? "" : ", ") + std::to_string(choice);
    return {d + " does not divide " + std::to_string(q.ranks) + " ranks, and all replicas have equally many",
            "Use one of " + choices + ", or start a multiple of " + d + " ranks"};
  }
  if (degree > q.heads)
    return {"each rank attends with at least one head, and the model has " + std::to_string(q.heads),
            "Use a degree of at most " + std::to_string(q.heads) + ", or a model with more heads"};
  if (degree > q.context)
    return {"each rank holds at least one token of a sequence, and sequences have " + std::to_string(q.context),
            "Use a degree of at most " + std::to_string(q.context) + ", or a longer train.context"};
  const int replicas = q.ranks / degree;
  if (replicas > q.global_batch)
    return {std::to_string(replicas) + " replicas cannot share " + std::to_string(q.global_batch) + " sequences a step",
            "Raise train.global_batch to at least " + std::to_string(replicas) + ", use a larger degree, or start fewer ranks"};
  return {};
}

// "9 heads", "8 heads in 2 groups"
std::string heads_text(const ParallelQuestion& q) {
  std::string text = std::to_string(q.heads) + " heads";
  if (q.kv_heads != q.heads) text.append(" in ").append(std::to_string(q.kv_heads)).append(" groups");
  return text;
}

std::string shape_text(const ParallelQuestion& q, int degree) {
  const int replicas = q.ranks / degree;
  std::string text = std::to_string(replicas) + (replicas == 1 ? " replica of " : " replicas of ") + std::to_string(degree) +
                     (degree == 1 ? " rank" : " ranks");
  if (!is_even(head_map(q.heads, q.kv_heads, degree))) text += ", with uneven shares of " + heads_text(q);
  if (degree > q.kv_heads) {
    text.append(", each key/value head on ").append(std::to_string(degree / q.kv_heads));
    if (degree % q.kv_heads != 0) text.append(" or ").append(std::to_string(degree / q.kv_heads + 1));
    text.append(" ranks");
  }
  return text;
}

// A divisor of the ranks, and what is to be said about it.
struct Candidate {
  int degree = 1;
  bool possible = true;  // by the shape of the job
  bool even = true;      // shares out the heads evenly
  int64_t bytes = 0;     // that a rank needs; 0 if the budget is not known
  std::string why;       // why it is not possible, or does not fit into memory
  bool fits() const { return why.empty(); }
};

std::vector<Candidate> judge_degrees(const ParallelQuestion& question) {
  std::vector<Candidate> candidates;
  const bool memory_known = question.memory_budget > 0 && question.bytes_at_degree;
  for (int degree : divisors(question.ranks)) {
    Candidate c{.degree = degree, .why = shape_refusal(question, degree).why};
    c.possible = c.why.empty();
    c.even = c.possible && is_even(head_map(question.heads, question.kv_heads, degree));
    if (c.possible && memory_known) {
      c.bytes = question.bytes_at_degree(degree);
      if (c.bytes > question.memory_budget) c.why = "a rank would need " + gib(c.bytes) + " of " + gib(question.memory_budget);
    }
    candidates.push_back(std::move(c));
  }
  return candidates;
}

[[noreturn]] void refuse_all(const ParallelQuestion& question, const std::vector<Candidate>& candidates) {
  std::string reasons;
  int largest = 1;  // that the model allows; degree 1 always does, so what is missing are sequences
  for (const Candidate& c : candidates) {
    reasons += (reasons.empty() ? "" : "; ") + std::to_string(c.degree) + ": " + c.why;
    ParallelQuestion enough = question;
    enough.global_batch = question.ranks;
    if (shape_refusal(enough, c.degree).why.empty()) largest = c.degree;
  }
  throw Error(ErrorKind::usage, "autosp finds no sequence degree for " + std::to_string(question.ranks) + " ranks. " + reasons +
                                    ". Raise train.global_batch to at least " + std::to_string(question.ranks / largest) +
                                    ", or start fewer ranks.");
}

}  // namespace

ChosenDegree check_degree(const ParallelQuestion& question, int degree) {
  const Refusal refusal = shape_refusal(question, degree);
  if (!refusal.why.empty())
    throw Error(ErrorKind::usage, "autosp.degree " + std::to_string(degree) + " does not fit this job. The reason: " + refusal.why + ". " +
                                      refusal.cure + ", or leave autosp.degree at auto.");
  return {degree, "sequence degree " + std::to_string(degree) + " as given: " + shape_text(question, degree)};
}

ChosenDegree choose_degree(const ParallelQuestion& question) {
  const std::vector<Candidate> candidates = judge_degrees(question);
  const Candidate* chosen = nullptr;
  for (const Candidate& c : candidates)  // ascending: the first one wins, but one with even shares of the heads beats one without
    if (c.fits() && (chosen == nullptr || (!chosen->even && c.even))) chosen = &c;
  std::string note;
  if (chosen == nullptr) {
    // None fits into memory. Refusing that is core's: its memory table says what is missing where.
    for (const Candidate& c : candidates)
      if (c.possible && (chosen == nullptr || c.bytes < chosen->bytes)) chosen = &c;
    note = ", no degree fits into memory and this one needs least";
  }
  if (chosen == nullptr) refuse_all(question, candidates);
  std::string smaller;
  for (const Candidate& c : candidates) {
    if (c.degree >= chosen->degree) break;
    const std::string why = c.fits() ? "it does not divide " + heads_text(question) : c.why;
    smaller += (smaller.empty() ? " (not " : "; not ") + std::to_string(c.degree) + ": " + why;
  }
  if (!smaller.empty()) smaller += ")";
  return {chosen->degree,
          "sequence degree " + std::to_string(chosen->degree) + " by auto" + note + ": " + shape_text(question, chosen->degree) + smaller};
}

}  // namespace nsp
