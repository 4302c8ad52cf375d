#include "tests/model/rig.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/cpu_backend.hpp"

namespace nsp::test {

Rig::Rig(unsigned seed)
    : fake_(make_fake_backend(load_cpu_backend(), uint64_t{1} << 30, seed)),
      device_(std::make_unique<Device>(fake_->table(), "fake cpu", 0, 1)),
      stream_(std::make_unique<Stream>(*device_)),
      ops_(std::make_unique<Ops>(*stream_)) {}

Rig::~Rig() {
  synchronize();
}

void Rig::synchronize() {
  Event event(*device_);
  event.record(*stream_);
  wait_.wait(event);
}

TensorView Rig::tensor(std::initializer_list<int64_t> sizes, DType dtype) {
  const TensorView shape(nullptr, dtype, sizes);
  buffers_.emplace_back(*device_, shape.bytes(), MemoryKind::device, "test");
  stream_->fill(buffers_.back().data(), 0xff, shape.bytes());
  return TensorView(buffers_.back().data(), dtype, sizes);
}

void Rig::assign(TensorView to, const Values& values) {
  ASSERT_EQ(static_cast<std::size_t>(to.elements()), values.size());
  const std::vector<float> host(values.begin(), values.end());
  stream_->copy(to.data(), host.data(), to.bytes());
  synchronize();
}

TensorView Rig::upload(const Values& values, std::initializer_list<int64_t> sizes) {
  const TensorView view = tensor(sizes);
  assign(view, values);
  return view;
}

TensorView Rig::upload(const std::vector<int32_t>& values, std::initializer_list<int64_t> sizes) {
  const TensorView view = tensor(sizes, DType::i32);
  stream_->copy(view.data(), values.data(), view.bytes());
  synchronize();
  return view;
}

Values Rig::download(TensorView from) {
  if (from.dtype() == DType::f64) {
    Values host(static_cast<std::size_t>(from.elements()));
    stream_->copy(host.data(), from.data(), from.bytes());
    synchronize();
    return host;
  }
  std::vector<float> host(static_cast<std::size_t>(from.elements()));
  stream_->copy(host.data(), from.data(), from.bytes());
  synchronize();
  return Values(host.begin(), host.end());
}

ParamBuffers::ParamBuffers(Rig& rig, const ParamTable& table, const Params& params, double padding) : rig_(rig), table_(table) {
  for (std::size_t s = 0; s < table.segments().size(); ++s) {
    Values storage;
    for (const int i : table.segments()[s].params) {
      const Values& value = params.at(table.param(i).name);
      storage.insert(storage.end(), value.begin(), value.end());
    }
    storage.resize(static_cast<std::size_t>(table.segments()[s].storage), padding);
    weights_.push_back(rig.upload(storage, {table.segments()[s].storage}));
    gradients_.push_back(rig.upload(Values(storage.size()), {table.segments()[s].storage}));
    held_.push_back(0);
    held_gradients_.push_back(0);
  }
}

TensorView ParamBuffers::weights(int segment) {
  EXPECT_EQ(held_[index(segment)]++, 0) << name(segment) << " is acquired twice";
  calls_.push_back("weights " + name(segment));
  return weights_[index(segment)];
}

TensorView ParamBuffers::gradients(int segment) {
  EXPECT_EQ(held_[index(segment)], 1) << name(segment) << ": gradients come with weights";
  EXPECT_EQ(held_gradients_[index(segment)]++, 0);
  calls_.push_back("gradients " + name(segment));
  return gradients_[index(segment)];
}

void ParamBuffers::release(int segment, bool gradients_written) {
  EXPECT_EQ(--held_[index(segment)], 0) << name(segment) << " is released without an acquire";
  EXPECT_EQ(held_gradients_[index(segment)], gradients_written ? 1 : 0);
  held_gradients_[index(segment)] = 0;
  calls_.push_back("release " + name(segment));
}

bool ParamBuffers::all_released() const {
  for (const int held : held_)
    if (held != 0) return false;
  return true;
}

void ParamBuffers::zero_gradients() {
  for (const TensorView& g : gradients_) rig_.ops().zero(g);
}

Params ParamBuffers::read(const std::vector<TensorView>& storage) {
  Params out;
  for (std::size_t s = 0; s < storage.size(); ++s) {
    const Values values = rig_.download(storage[s]);
    for (const int i : table_.segments()[s].params) {
      const Param& p = table_.param(i);
      out[p.name] = Values(values.begin() + p.offset, values.begin() + p.offset + p.elements());
    }
  }
  return out;
}

void expect_close(const Values& got, const Values& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want[i]));
    worst = std::isfinite(got[i]) ? std::max(worst, std::abs(got[i] - want[i])) : std::numeric_limits<double>::infinity();
    if (std::isinf(worst)) break;
  }
  EXPECT_LE(worst, tolerance * (largest + 1e-12)) << what << ": largest magnitude " << largest;
}

void expect_close(const Params& got, const Params& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, value] : want) expect_close(got.at(name), value, tolerance, name);
}

BatchShape whole_shape(const ModelSpec& spec, int64_t batch, int64_t tokens) {
  BatchShape shape;
  shape.micro_batch = batch;
  shape.local_tokens = shape.tokens = tokens;
  shape.local_heads = spec.heads;
  shape.local_kv_heads = spec.kv_heads;
  return shape;
}

MicroBatch upload_batch(Rig& rig, const ReferenceBatch& batch) {
  const int64_t n = batch.batch * batch.tokens;
  MicroBatch out;
  out.tokens = rig.upload(batch.input, {n});
  out.targets = rig.upload(batch.target, {n});
  out.positions = rig.upload(batch.position, {n});
  if (!batch.document_start.empty()) out.document_start = rig.upload(batch.document_start, {batch.batch, batch.tokens});
  return out;
}

ModelRig::ModelRig(Rig& rig, const ModelSpec& spec, const Params& params, int64_t largest_batch, int64_t tokens, int64_t logits_bytes,
                   double padding)
    : rig_(rig), model_(spec, logits_bytes), params_(rig, model_.table(), params, padding) {
  model_.plan(planner_, whole_shape(model_.spec(), largest_batch, tokens));
  workspace_ = std::make_unique<Workspace>(rig.device(), planner_);
  loss_ = rig.tensor({1}, DType::f64);
  logits_ = rig.tensor({1, model_.spec().padded_vocab()});
}

ModelContext ModelRig::context(const ReferenceBatch& batch, bool train) {
  return {rig_.ops(), *workspace_, strategy_, rig_.wait(), whole_shape(model_.spec(), batch.batch, batch.tokens), upload_batch(rig_, batch),
          train};
}

double ModelRig::step(const ReferenceBatch& batch, bool train) {
  const ModelContext c = context(batch, train);
  rig_.ops().zero(loss_);
  model_.forward(c, params_, loss_);
  if (train) model_.backward(c, params_, [this](int segment) { segments_done_.push_back(segment); });
  EXPECT_TRUE(params_.all_released());
  return rig_.download(loss_)[0];
}

Values ModelRig::logits(const ReferenceBatch& batch, int64_t row) {
  const ModelContext c = context(batch, false);
  model_.logits(c, params_, row, logits_);
  EXPECT_TRUE(params_.all_released());
  Values out = rig_.download(logits_);
  out.resize(static_cast<std::size_t>(model_.spec().vocab));
  return out;
}

}  // namespace nsp::test
