// What a model test computes on: the CPU backend behind the fake device, so that a host access to device memory, a view that
// leaves its allocation or a missing wait is found here and not on a GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/model/transformer.hpp"
#include "tests/model/reference_transformer.hpp"
#include "tests/support/fake_device.hpp"

namespace nsp::test {

// No parallelism inside the replica.
class WholeSequences : public ParallelStrategy {
 public:
  ParallelPlan propose(const ParallelQuestion&) override { return {}; }
  void open(const ParallelContext&) override {}
  int64_t staging_bytes(const ParallelPlan&, const ParallelQuestion&, int64_t) const override { return 0; }
  bool splits_heads() const override { return false; }
  HeadShare head_share(const ParallelPlan&, int, int64_t heads, int64_t kv_heads) const override { return {0, heads, 0, kv_heads}; }
  void sequence_to_heads(std::span<const HeadExchange>) override { throw Error(ErrorKind::internal, "no exchange is expected"); }
  void heads_to_sequence(std::span<const HeadExchange>) override { throw Error(ErrorKind::internal, "no exchange is expected"); }
};

// Device tensors by value of their content; freed with the rig's buffers.
class Rig {
 public:
  explicit Rig(unsigned seed = 1);
  ~Rig();
  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }
  const Ops& ops() { return *ops_; }
  HostWait& wait() { return wait_; }

  // Allocated with NaN in it.
  TensorView tensor(std::initializer_list<int64_t> sizes, DType dtype = DType::f32);
  TensorView upload(const Values& values, std::initializer_list<int64_t> sizes);
  TensorView upload(const std::vector<int32_t>& values, std::initializer_list<int64_t> sizes);
  void assign(TensorView to, const Values& values);  // f32, dense
  Values download(TensorView from);                  // f32 or f64, dense
  void synchronize();

 private:
  std::unique_ptr<FakeBackend> fake_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Ops> ops_;
  HostWait wait_;
  std::vector<Buffer> buffers_;
};

// Weights and gradient sums of a model, one buffer a segment. It also checks the discipline of the calls.
class ParamBuffers : public ParamAccess {
 public:
  // padding: what rows of storage that pad a vocabulary hold.
  ParamBuffers(Rig& rig, const ParamTable& table, const Params& params, double padding = 0.0);
  void prefetch(int segment) override { calls_.push_back("prefetch " + name(segment)); }
  TensorView weights(int segment) override;
  TensorView gradients(int segment) override;
  void release(int segment, bool gradients_written) override;

  Params read_weights() { return read(weights_); }
  Params read_gradients() { return read(gradients_); }
  Values read_storage(int segment, bool gradients) {
    return rig_.download(gradients ? gradients_[index(segment)] : weights_[index(segment)]);
  }
  void zero_gradients();
  TensorView weight_storage(int segment) const { return weights_[index(segment)]; }
  TensorView gradient_storage(int segment) const { return gradients_[index(segment)]; }
  SegmentViews views(int segment) const { return {table_, weights_[index(segment)], gradients_[index(segment)]}; }
  const std::vector<std::string>& calls() const { return calls_; }  // "prefetch blocks.0", "weights head", ...
  bool all_released() const;

 private:
  static std::size_t index(int segment) { return static_cast<std::size_t>(segment); }
  const std::string& name(int segment) const { return table_.segment(segment).name; }
  Params read(const std::vector<TensorView>& storage);
  Rig& rig_;
  const ParamTable& table_;
  std::vector<TensorView> weights_, gradients_;
  std::vector<int> held_, held_gradients_;
  std::vector<std::string> calls_;
};

// Relative to the largest magnitude of the reference, which is what fp32 sums can promise.
void expect_close(const Values& got, const Values& want, double tolerance, const std::string& what);
void expect_close(const Params& got, const Params& want, double tolerance);

// A model with its memory, ready to run micro-steps on whole sequences.
class ModelRig {
 public:
  ModelRig(Rig& rig, const ModelSpec& spec, const Params& params, int64_t largest_batch, int64_t tokens,
           int64_t logits_bytes = Head::default_logits_bytes, double padding = 0.0);
  // batch in, loss sum out; gradients are added to if train.
  double step(const ReferenceBatch& batch, bool train);
  Values logits(const ReferenceBatch& batch, int64_t row);
  ParamBuffers& params() { return params_; }
  Transformer& model() { return model_; }
  const ActivationPlanner& planner() const { return planner_; }
  std::vector<int>& segments_done() { return segments_done_; }
  ModelContext context(const ReferenceBatch& batch, bool train);

 private:
  Rig& rig_;
  Transformer model_;
  ParamBuffers params_;
  ActivationPlanner planner_;
  std::unique_ptr<Workspace> workspace_;
  WholeSequences strategy_;
  TensorView loss_, logits_;
  std::vector<int> segments_done_;
};

BatchShape whole_shape(const ModelSpec& spec, int64_t batch, int64_t tokens);
MicroBatch upload_batch(Rig& rig, const ReferenceBatch& batch);

}  // namespace nsp::test
