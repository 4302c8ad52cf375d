// Runs that go on with another layout: other ranks, replicas, degree, policy or optimizer. In one process.
// Longer than usual: every case needs the same layouts, runs and independent merge, and reads best beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "core/tensor/core_states.hpp"
#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

constexpr int64_t first_steps = 20, all_steps = 30, batch = 8;

struct Layout {
  std::string sync = "ddp";
  int replicas = 1, degree = 1;
  std::string optimizer = "adamw";
  bool fake_device = false;
};

std::string text_of(const Layout& l) {
  return l.sync + std::to_string(l.replicas) + "x" + std::to_string(l.degree) + l.optimizer + (l.fake_device ? "OnFakeDevices" : "");
}

LocalSettings settings(const Layout& layout, int64_t steps, CheckpointStore* store) {
  LocalSettings s = tiny_settings();
  s.train.clip = 1.0;
  s.train.steps = steps;
  s.global_batch = batch;
  s.ranks = layout.replicas;
  s.fake_device = layout.fake_device;
  s.sync = layout.sync;
  s.optimizer = layout.optimizer;
  if (layout.sync == "desloc") s.options = {{"desloc.kx", "3"}, {"desloc.ku", "9"}, {"desloc.kv", "18"}};
  if (layout.optimizer == "sgd") s.options["desloc.kv"] = "192";  // sgd has no second moment
  s.store = store;
  return with_autosp(s, layout.degree);
}

LocalResult go_on(const Layout& layout, int64_t steps, CheckpointStore* store, const LocalSettings& like) {
  LocalSettings s = settings(layout, steps, store);
  s.resume = true;
  s.before = like.before;
  s.extra_states = like.extra_states;
  s.train.schedule = like.train.schedule;
  return run_local(s);
}
LocalResult go_on(const Layout& layout, int64_t steps, CheckpointStore* store) {
  return go_on(layout, steps, store, settings(layout, steps, store));
}

// Losses of all replicas together by step (from 1), as metrics.jsonl has them.
std::map<int64_t, double> losses(const LocalResult& result) {
  std::map<int64_t, double> out;
  for (const std::string& line : result.metrics)
    if (line.find("\"kind\":\"step\"") != std::string::npos)
      out[static_cast<int64_t>(json_number(line, "step"))] = json_number(line, "loss");
  return out;
}

double mean(const std::map<int64_t, double>& values, int64_t first, int64_t last) {
  double sum = 0;
  for (int64_t step = first; step <= last; ++step) sum += values.at(step);
  return sum / static_cast<double>(last - first + 1);
}

void expect_losses(const LocalResult& expected, const LocalResult& found, int64_t first, int64_t last, double relative) {
  const std::map<int64_t, double> a = losses(expected), b = losses(found);
  for (int64_t step = first; step <= last; ++step) {
    ASSERT_EQ(b.count(step), 1u) << "step " << step;
    EXPECT_NEAR(a.at(step), b.at(step), relative * a.at(step)) << "step " << step;
  }
}

std::string source(const Restored& restored, const std::string& kind) {
  const std::string record = resume_record(restored).text(), key = "{\"kind\":\"" + kind + "\",\"from\":\"";
  const std::size_t at = record.find(key);
  return at == std::string::npos ? "" : record.substr(at + key.size(), record.find('"', at + key.size()) - at - key.size());
}

using Tensors = std::map<std::string, std::vector<float>>;

Tensors read_all(CheckpointReader& reader, const std::string& prefix) {
  Tensors out;
  for (const PieceRecord& piece : reader.pieces()) {
    if (piece.name.rfind(prefix, 0) != 0) continue;
    int64_t elements = 1;
    for (int64_t size : piece.shape) elements *= size;
    std::vector<float>& values = out[piece.name.substr(prefix.size())];
    values.resize(static_cast<std::size_t>(elements));
    reader.get(piece.name, DType::f32, 0, elements, values.data());
  }
  return out;
}

// The owned ranges of a state, collected from all ranks into whole tensors, for each replica.
class StateRecorder {
 public:
  explicit StateRecorder(std::string kind) : kind_(std::move(kind)) {}
  void record(TrainParts& parts) {
    const StateId state = parts.arena.find(kind_);
    if (state < 0) throw std::runtime_error(kind_);
    for (const Range& own : parts.owned()) {
      if (own.empty()) continue;
      const TensorView view = parts.arena.view(state, own);
      Buffer host(parts.device, view.bytes(), MemoryKind::pinned, "state for a test");
      parts.stream.copy(host.data(), view.data(), view.bytes());
      parts.wait.wait(*record_event(parts.device, parts.stream, "state"));
      std::lock_guard lock(mutex_);
      for (const ParamPiece& piece : parts.model.table().pieces(own)) {
        const Param& param = parts.model.table().param(piece.param);
        std::vector<float>& values = replicas_[parts.replica()][param.name];
        values.resize(static_cast<std::size_t>(param.elements()));
        std::memcpy(values.data() + piece.offset_in_param, static_cast<const float*>(host.data()) + (piece.range.lo - own.lo),
                    static_cast<std::size_t>(piece.range.size()) * sizeof(float));
      }
    }
  }
  const Tensors& of(int replica) const { return replicas_.at(replica); }

 private:
  const std::string kind_;
  std::mutex mutex_;
  std::map<int, Tensors> replicas_;
};

void expect_same_bits(const Tensors& expected, const Tensors& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (const auto& [name, values] : expected) {
    ASSERT_EQ(values.size(), found.at(name).size()) << name;
    EXPECT_EQ(0, std::memcmp(values.data(), found.at(name).data(), values.size() * sizeof(float))) << name;
  }
}

// x_0 + sum w_m (x_m - x_0), written here once more.
Tensors merged(CheckpointReader& reader, const std::string& kind, const std::vector<int64_t>& shares) {
  Tensors out = read_all(reader, "/replica_0000/" + kind + "/");
  const Tensors first = out;
  for (std::size_t m = 1; m < shares.size(); ++m) {
    const Tensors own = read_all(reader, "/replica_000" + std::to_string(m) + "/" + kind + "/");
    for (auto& [name, values] : out)
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float difference = own.at(name)[i] - first.at(name)[i];
        const float part = static_cast<float>(static_cast<double>(shares[m]) / batch) * difference;
        values[i] = values[i] + part;
      }
  }
  return out;
}

// The samples of another source from a later one on.
class From : public DataSource {
 public:
  From(std::unique_ptr<DataSource> all, int64_t first) : all_(std::move(all)), first_(first) {}
  int64_t samples() const override { return all_->samples() - first_; }
  int64_t context() const override { return all_->context(); }
  int64_t vocabulary() const override { return all_->vocabulary(); }
  const std::string& tokenizer() const override { return all_->tokenizer(); }
  const std::string& fingerprint() const override { return all_->fingerprint(); }
  double bytes_per_token() const override { return all_->bytes_per_token(); }
  void read(int64_t sample, int32_t* tokens, int32_t* starts) override { all_->read(first_ + sample, tokens, starts); }

 private:
  std::unique_ptr<DataSource> all_;
  int64_t first_;
};

// The loss of the weights in /model on the batch of a step (from 0), by a run that starts from them.
double loss_of_model(CheckpointReader& reader, int64_t step) {
  const Tensors model = read_all(reader, "/model/");
  LocalSettings s = settings({}, 1, nullptr);
  s.weights = [&](const Param& param, int64_t offset, int64_t count, float* out) {
    std::copy_n(model.at(param.name).begin() + offset, count, out);
  };
  s.train_data = [step] { return std::make_unique<From>(tiny_data("train"), step * batch); };
  return losses(run_local(s)).at(1);
}

struct Change {
  Layout before, after;
};
std::string name_of(const testing::TestParamInfo<Change>& info) {
  return text_of(info.param.before) + "To" + text_of(info.param.after);
}

class RestoreDdp : public testing::TestWithParam<Change> {};

TEST_P(RestoreDdp, AnotherNumberOfRanksDoesNotShowInTheLosses) {
  const auto& [before, after] = GetParam();
  MemoryStore store;
  const LocalResult whole = run_local(settings(before, all_steps, nullptr));
  run_local(settings(before, first_steps, &store));
  const LocalResult resumed = go_on(after, all_steps, &store);
  expect_losses(whole, resumed, first_steps + 1, all_steps, 1e-6);
  for (const char* kind : {"weights", "adamw.m", "adamw.v"}) EXPECT_EQ(source(resumed.restored, kind), "common");
  EXPECT_EQ(resumed.restored.state.updates, first_steps);
  EXPECT_EQ(resumed.restored.replicas_before, before.replicas);
  EXPECT_EQ(resumed.restored.replicas_now, after.replicas);
}

INSTANTIATE_TEST_SUITE_P(Layouts, RestoreDdp,
                         testing::Values(Change{{"ddp", 2}, {"ddp", 1}}, Change{{"ddp", 1}, {"ddp", 2}}, Change{{"ddp", 2}, {"ddp", 3}}),
                         name_of);

class RestoreDegree : public testing::TestWithParam<Layout> {};

TEST_P(RestoreDegree, EachDegreeGoesOnWhereTheOtherStopped) {
  Layout layout = GetParam();
  MemoryStore store;
  const LocalResult whole = run_local(settings(layout, 40, nullptr));
  int64_t step = 0;
  for (const int degree : {1, 2, 4, 1}) {
    layout.degree = degree;
    const LocalResult part = step == 0 ? run_local(settings(layout, 10, &store)) : go_on(layout, step + 10, &store);
    expect_losses(whole, part, step + 1, step + 10, 1e-5);
    const std::string kept = layout.sync == "desloc" ? "replica" : "common";
    EXPECT_EQ(source(part.restored, "adamw.v"), step > 0 ? kept : "");
    step += 10;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, RestoreDegree, testing::Values(Layout{"ddp", 1}, Layout{"desloc", 2}),
                         [](const auto& info) { return text_of(info.param); });

TEST(RestoreDegrees, EveryReplicaHasItsOwnStatesBitForBit) {
  MemoryStore store;
  run_local(settings({"desloc", 2}, 10, &store));
  StateRecorder weights("weights"), m("adamw.m"), v("adamw.v");
  LocalSettings s = settings({"desloc", 2, 2}, 11, &store);
  s.before = [&](TrainParts& parts) {
    for (StateRecorder* states : {&weights, &m, &v}) states->record(parts);
  };
  const std::unique_ptr<CheckpointReader> reader = store.open(10);
  go_on({"desloc", 2, 2}, 11, &store, s);
  for (int replica : {0, 1}) {
    const std::string prefix = "/replica_000" + std::to_string(replica) + "/";
    expect_same_bits(read_all(*reader, prefix + "weights/"), weights.of(replica));
    expect_same_bits(read_all(*reader, prefix + "adamw.m/"), m.of(replica));
    expect_same_bits(read_all(*reader, prefix + "adamw.v/"), v.of(replica));
  }
}

class RestoreMerged : public testing::TestWithParam<Change> {};

TEST_P(RestoreMerged, GoesOnFromTheMergedWeightsWithoutAJump) {
  const auto& [before, after] = GetParam();
  MemoryStore store;
  const std::map<int64_t, double> whole = losses(run_local(settings(before, all_steps, nullptr)));
  run_local(settings(before, first_steps, &store));
  const std::unique_ptr<CheckpointReader> reader = store.open(first_steps);
  StateRecorder weights("weights"), m("adamw.m"), v("adamw.v");
  LocalSettings s = settings(after, all_steps, &store);
  s.before = [&](TrainParts& parts) {
    for (StateRecorder* states : {&weights, &m, &v}) states->record(parts);
  };
  const LocalResult resumed = go_on(after, all_steps, &store, s);
  const std::map<int64_t, double> found = losses(resumed);

  const double first = loss_of_model(*reader, first_steps);
  EXPECT_NEAR(found.at(first_steps + 1), first, 1e-6 * first);
  EXPECT_LE(mean(found, first_steps + 1, all_steps), 1.02 * mean(whole, first_steps + 1, all_steps));
  const bool differed = before.sync == "desloc" && before.replicas > 1;
  const std::string expected = differed ? "mean of " + std::to_string(before.replicas) : "common";
  const std::vector<int64_t> shares = equal_shares(batch, before.replicas);
  for (const StateRecorder* states : {&weights, &m, &v}) {
    const std::string kind = states == &weights ? "weights" : states == &m ? "adamw.m" : "adamw.v";
    EXPECT_EQ(source(resumed.restored, kind), expected);
    const Tensors right =
        differed ? merged(*reader, kind, shares) : read_all(*reader, states == &weights ? "/model/" : "/state/" + kind + "/");
    for (int r = 0; r < after.replicas; ++r) expect_same_bits(right, states->of(r));
  }
  EXPECT_EQ(resumed.restored.state.updates, first_steps);
  EXPECT_TRUE(resumed.restored.dropped.empty());
}

INSTANTIATE_TEST_SUITE_P(Layouts, RestoreMerged,
                         testing::Values(Change{{"desloc", 2}, {"desloc", 1}}, Change{{"desloc", 1}, {"desloc", 2}},
                                         Change{{"desloc", 2}, {"desloc", 3}}, Change{{"desloc", 3}, {"desloc", 2}},
                                         Change{{"ddp", 2}, {"desloc", 2}}, Change{{"desloc", 2}, {"ddp", 2}},
                                         Change{{"desloc", 3}, {"ddp", 1, 2}}, Change{{"desloc", 2}, {"desloc", 1, 2, "adamw", true}},
                                         Change{{"ddp", 1, 2}, {"desloc", 2, 2}}),
                         name_of);

TEST(RestoreOptimizer, AnotherOneStartsAsNewAndSaysSo) {
  MemoryStore store;
  LocalSettings s = settings({}, first_steps, &store);
  s.weights = tiny_settings().weights;
  const std::map<int64_t, double> whole = losses(run_local(settings({}, 40, nullptr)));
  run_local(s);
  s.train.schedule.peak = 0.03;  // sgd's steps are this much shorter than adamw's
  const LocalResult sgd = go_on({"ddp", 1, 1, "sgd"}, 30, &store, s);
  EXPECT_EQ(source(sgd.restored, "weights"), "common");
  EXPECT_EQ(source(sgd.restored, "sgd.momentum"), "new");
  EXPECT_EQ(sgd.restored.dropped, (std::vector<std::string>{"adamw.m", "adamw.v"}));
  EXPECT_EQ(sgd.restored.state.updates, 0);
  EXPECT_EQ(sgd.restored.state.step, 20);
  const double first = loss_of_model(*store.open(20), 20);
  EXPECT_NEAR(losses(sgd).at(21), first, 1e-6 * first);
  EXPECT_LE(mean(losses(sgd), 21, 30), 1.02 * mean(whole, 21, 30));

  const LocalResult adamw = go_on({}, 40, &store);
  EXPECT_EQ(source(adamw.restored, "adamw.m"), "new");
  EXPECT_EQ(adamw.restored.dropped, (std::vector<std::string>{"sgd.momentum"}));
  EXPECT_EQ(adamw.restored.state.updates, 0);
  const double again = loss_of_model(*store.open(30), 30);
  EXPECT_NEAR(losses(adamw).at(31), again, 1e-6 * again);
  EXPECT_LE(mean(losses(adamw), 31, 40), 1.02 * mean(whole, 31, 40));
}

// States with every merge rule, whose values tell the replica; nobody changes them, so a checkpoint has them as they were.
TEST(RestoreRules, IdenticalTakesReplicaZeroMeanTheSharesAndResetZero) {
  const auto decl = [](const char* kind, Merge merge) {
    StateDecl d;
    d.kind = kind;
    d.scope = Scope::per_replica;
    d.merge = merge;
    return d;
  };
  const std::vector<StateDecl> states{decl("test.same", Merge::identical), decl("test.mean", Merge::weighted_mean),
                                      decl("test.zero", Merge::reset)};
  MemoryStore store;
  LocalSettings s = settings({"desloc", 3}, 1, &store);
  s.extra_states = states;
  s.before = [](TrainParts& parts) {
    const float value = 1.0F + static_cast<float>(parts.replica());
    for (const char* kind : {"test.same", "test.mean", "test.zero"})
      for (const Range& own : parts.owned()) {
        Buffer host(parts.device, std::max<int64_t>(4 * own.size(), 4), MemoryKind::pinned, "values of a test");
        std::fill_n(static_cast<float*>(host.data()), own.size(), value);
        const TensorView view = parts.arena.view(parts.arena.find(kind), own);
        parts.stream.copy(view.data(), host.data(), view.bytes());
        parts.wait.wait(*record_event(parts.device, parts.stream, "values of a test"));
      }
  };
  run_local(s);
  StateRecorder same("test.same"), average("test.mean"), zero("test.zero");
  LocalSettings after = settings({"desloc", 2}, 2, &store);
  after.extra_states = states;
  after.before = [&](TrainParts& parts) {
    for (StateRecorder* r : {&same, &average, &zero}) r->record(parts);
  };
  const LocalResult resumed = go_on({"desloc", 2}, 2, &store, after);
  EXPECT_EQ(source(resumed.restored, "test.same"), "replica 0");
  EXPECT_EQ(source(resumed.restored, "test.mean"), "mean of 3");
  EXPECT_EQ(source(resumed.restored, "test.zero"), "reset");
  const auto expect_all = [](const StateRecorder& found, float value) {
    for (int replica : {0, 1})
      for (const auto& [name, values] : found.of(replica))
        EXPECT_EQ(std::count(values.begin(), values.end(), value), static_cast<int64_t>(values.size())) << name;
  };
  expect_all(same, 1.0F);
  expect_all(average, 1.0F + 0.375F * 1.0F + 0.25F * 2.0F);  // shares 3, 3, 2 of 8
  expect_all(zero, 0.0F);
}

TEST(RestoreLines, SayWhatHappenedToEachState) {
  Restored r;
  r.state.step = 20;
  r.state.updates = 19;
  r.replicas_before = 4;
  r.replicas_now = 2;
  r.merged = true;
  r.states = {
      {"weights", StateSource::mean}, {"x.same", StateSource::first_replica}, {"x.zero", StateSource::reset}, {"y", StateSource::absent}};
  r.dropped = {"sgd.momentum"};
  EXPECT_EQ(restored_lines(r),
            (std::vector<std::string>{"  weights: weighted mean of 4 replicas", "  x.same: that of replica 0 of 4 replicas",
                                      "  x.zero: reset, since 4 replicas are merged", "  y: not in the checkpoint, starts as new",
                                      "  sgd.momentum: dropped, nothing in this run uses it",
                                      "  optimizer updates: 19, the most that any replica had made"}));
  EXPECT_EQ(
      resume_record(r).text(),
      R"({"kind":"resume","step":20,"replicas_before":4,"replicas":2,"optimizer_updates":19,"states":[{"kind":"weights","from":"mean of 4"},)"
      R"({"kind":"x.same","from":"replica 0"},{"kind":"x.zero","from":"reset"},{"kind":"y","from":"new"}],"dropped":["sgd.momentum"]})");
}

TEST(RestoreErrors, ADamagedPieceIsAnErrorOfEveryRank) {
  MemoryStore store;
  run_local(settings({"desloc", 2}, 5, &store));
  const std::vector<PieceRecord> pieces = store.open(5)->pieces();
  const auto of_rank_1 = std::find_if(pieces.begin(), pieces.end(),
                                      [](const PieceRecord& piece) { return piece.name.rfind("/replica_0001/adamw.v/", 0) == 0; });
  ASSERT_NE(of_rank_1, pieces.end());
  store.corrupt_piece(5, of_rank_1->name, of_rank_1->offset);
  try {
    go_on({"desloc", 2}, 6, &store);
    FAIL() << "the run went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_NE(std::string(e.what()).find("(rank 1)"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace nsp::test
