#include "tests/policies/against_serial.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "core/tensor/param_table.hpp"
#include "core/tensor/state_arena.hpp"
#include "nsp/sync_policy.hpp"
#include "tests/policies/plugin_object.hpp"
#include "tests/policies/ranks.hpp"

namespace nsp::test {
namespace {

using Given = std::map<std::string, std::string>;

const StateDecl weights_decl{.kind = "weights", .extent = Extent::full};
const std::vector<StateDecl> optimizer_states{{.kind = "adamw.m", .moment = 1}, {.kind = "adamw.v", .moment = 2}};
constexpr int64_t bucket = 256;

ParamTable small_model() {
  ParamTable table;
  table.add_segment("embedding");
  table.add("wte", {50, 20}, Role::embedding, {});
  table.add_segment("block");
  table.add("w", {12, 16}, Role::matrix, {});
  table.add("b", {5}, Role::bias, {});
  table.add_segment("head");
  table.add("ln", {64}, Role::norm, {});
  return table;
}

// This rank owns a part of the first segment, nothing of the second and all of the third, as a position of a larger replica may.
const std::vector<Range> owned{{0, 64, 832}, {1, 192, 192}, {2, 0, 64}};

// What each replica does to a state between averages; any numbers that differ will do.
std::vector<float> drift(int replica, int64_t t, std::size_t state, std::size_t segment) {
  return values(owned[segment].size(),
                static_cast<unsigned>(((replica * 100 + t) * 10 + static_cast<int64_t>(state)) * 10 + static_cast<int64_t>(segment)));
}

// The owned ranges of weights and moments: [state][segment].
using States = std::vector<std::vector<std::vector<float>>>;

States initial_states(int replica) {
  States states(3);
  for (std::size_t i = 0; i < states.size(); ++i)
    for (std::size_t s = 0; s < owned.size(); ++s)
      states[i].push_back(i == 0 ? values(owned[s].size(), static_cast<unsigned>(s)) : drift(replica, -1, i, s));
  return states;
}

void apply_drift(States& states, int replica, int64_t t) {
  for (std::size_t i = 0; i < states.size(); ++i)
    for (std::size_t s = 0; s < owned.size(); ++s) {
      const std::vector<float> d = drift(replica, t, i, s);
      for (std::size_t k = 0; k < d.size(); ++k) states[i][s][k] += 0.125F * d[k];
    }
}

void average(std::vector<States>& replicas, const std::vector<double>& weights, const std::string& synced) {
  const std::vector<char> names{'x', 'u', 'v'};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (synced.find(names[i]) == std::string::npos) continue;
    for (std::size_t s = 0; s < owned.size(); ++s) {
      std::vector<std::vector<float>> x;
      for (const States& states : replicas) x.push_back(states[i][s]);
      const std::vector<float> mean = serial_mean(x, weights);
      for (States& states : replicas) states[i][s] = mean;
    }
  }
}

// One rank's replica: arenas, cache and policy.
class Replica {
 public:
  Replica(Rank& rank, const Given& given, const std::vector<double>& weights)
      : rank_(rank), cache_(nsp_builtin_memory_resident), policy_(nsp_plugin, given), table_(small_model()) {
    std::vector<StateDecl> decls{weights_decl};
    decls.insert(decls.end(), optimizer_states.begin(), optimizer_states.end());
    for (const StateDecl& decl : policy_->declare(optimizer_states, rank.size)) decls.push_back(decl);
    arena_ = std::make_unique<StateArena>(rank.device, rank.stream, table_, decls, owned);
    cache_->open(*arena_);
    std::vector<NamedState> named;
    for (std::size_t i = 0; i < decls.size(); ++i) named.push_back({static_cast<StateId>(i), decls[i]});
    policy_->open({rank.rank, rank.size, weights, rank.comm, owned, named, *cache_, rank.stream, rank.wait, bucket});
    const States states = initial_states(rank.rank);
    for (std::size_t i = 0; i < states.size(); ++i)
      for (std::size_t s = 0; s < owned.size(); ++s) write(rank, view(i, s), states[i][s]);
  }
  SyncPolicy& policy() { return *policy_; }
  TensorView view(std::size_t state, std::size_t segment) const { return arena_->view(static_cast<StateId>(state), owned[segment]); }

  States read_all() {
    States states(3);
    for (std::size_t i = 0; i < states.size(); ++i)
      for (std::size_t s = 0; s < owned.size(); ++s) states[i].push_back(read(rank_, view(i, s)));
    return states;
  }

  // The gradients of a step; the policy has no use for them, but core hands them on.
  void backward() {
    for (std::size_t s = owned.size(); s-- > 0;) {
      policy_->gradient_ready(owned[s], view(0, s), After{now(rank_), nullptr});
      rank_.wait.progress();
    }
  }

  void optimize(int64_t t) {
    const Ops ops(rank_.stream);
    std::vector<Buffer> drifts;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t s = 0; s < owned.size(); ++s) {
        if (owned[s].empty()) continue;
        drifts.push_back(upload(rank_, drift(rank_.rank, t, i, s)));
        ops.axpy(view(i, s), vector_view(drifts.back()), 0.125F);
      }
    rank_.wait.wait(*now(rank_));
  }

 private:
  Rank& rank_;
  PluginObject<LocCache> cache_;
  PluginObject<SyncPolicy> policy_;
  ParamTable table_;
  std::unique_ptr<StateArena> arena_;
};

}  // namespace

void run_against_serial(Kind kind, int replicas, const Given& given, const std::vector<double>& weights,
                        const std::vector<std::string>& schedule) {
  std::atomic<int64_t> bytes{0};
  run_ranks(kind, replicas, [&](Rank& rank) {
    Replica self(rank, given, weights);
    std::vector<States> serial;
    for (int m = 0; m < replicas; ++m) serial.push_back(initial_states(m));
    const std::size_t own = static_cast<std::size_t>(rank.rank);
    for (std::size_t step = 0; step < schedule.size(); ++step) {
      const auto t = static_cast<int64_t>(step);
      const int64_t sent = rank.comm.bytes_sent();
      self.policy().begin_step(t);
      self.backward();
      for (std::size_t s = 0; s < owned.size(); ++s)
        EXPECT_EQ(read(rank, self.view(0, s)), serial[own][0][s]) << "forward and backward read the own weights, step " << t;
      self.policy().finish_step(t);
      average(serial, weights, schedule[step]);
      EXPECT_EQ(self.read_all(), serial[own]) << "after finish_step " << t;
      EXPECT_EQ(self.policy().synced(t), schedule[step]) << "step " << t;
      if (schedule[step].empty()) {
        EXPECT_EQ(rank.comm.bytes_sent(), sent) << "nothing is due at step " << t;
      }
      self.optimize(t);
      for (int m = 0; m < replicas; ++m) apply_drift(serial[static_cast<std::size_t>(m)], m, t);
    }
    self.policy().quiesce();
    bytes += rank.comm.bytes_sent();
  });
  int64_t averages = 0;
  for (const std::string& synced : schedule) averages += static_cast<int64_t>(synced.size());
  EXPECT_EQ(bytes, averages * 2 * (replicas - 1) * 4 * 832);
}

}  // namespace nsp::test
