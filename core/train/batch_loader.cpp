#include "core/train/batch_loader.hpp"

namespace nsp {
namespace {
// tokens, targets, positions of the local rows, then document starts of the whole sequences; all i32
int64_t ints(const BatchShape& s) {
  return 3 * s.rows() + s.micro_batch * s.tokens;
}
}  // namespace

int64_t BatchLoader::device_bytes(const BatchShape& largest) {
  return 2 * 4 * ints(largest);
}
int64_t BatchLoader::host_bytes(const BatchShape& largest) {
  return 2 * 4 * ints(largest);
}

BatchLoader::BatchLoader(Device& device, Stream& stream, HostWait& wait, const BatchShape& largest, bool documents, int64_t vocabulary)
    : device_(device), stream_(stream), wait_(wait), largest_(largest), documents_(documents), vocabulary_(vocabulary) {
  for (int i = 0; i < 2; ++i) {
    Slot slot;
    slot.host = Buffer(device, 4 * ints(largest), MemoryKind::pinned, "data staging");
    slot.device = Buffer(device, 4 * ints(largest), MemoryKind::device, "data");
    slot.copied = std::make_shared<Event>(device, "data copied");
    slots_.push_back(std::move(slot));
  }
  tokens_.resize(static_cast<std::size_t>(largest.tokens + 1));
  starts_.resize(static_cast<std::size_t>(largest.tokens));
}

void BatchLoader::wait_for_slot() {
  wait_.wait(*slots_[turn_ % slots_.size()].copied);
}

BatchLoader::Slot& BatchLoader::next_slot() {
  wait_for_slot();
  return slots_[turn_++ % slots_.size()];
}

BatchShape BatchLoader::shape_of(int64_t sequences) const {
  NSP_REQUIRE(sequences >= 1 && sequences <= largest_.micro_batch, "a micro-batch is within the plan");
  BatchShape shape = largest_;
  shape.micro_batch = sequences;
  return shape;
}

LoadedBatch BatchLoader::place(Slot& slot, const BatchShape& shape) const {
  LoadedBatch out;
  out.shape = shape;
  const int64_t rows = out.shape.rows();
  auto* base = static_cast<int32_t*>(slot.device.data());
  out.batch.tokens = TensorView(base, DType::i32, {rows});
  out.batch.targets = TensorView(base + rows, DType::i32, {rows});
  out.batch.positions = TensorView(base + 2 * rows, DType::i32, {rows});
  if (documents_) out.batch.document_start = TensorView(base + 3 * rows, DType::i32, {shape.micro_batch, shape.tokens});
  return out;
}

int32_t* BatchLoader::host_part(Slot& slot, const TensorView& device_view) const {
  return static_cast<int32_t*>(slot.host.data()) + (static_cast<int32_t*>(device_view.data()) - static_cast<int32_t*>(slot.device.data()));
}

void BatchLoader::enqueue(Slot& slot, LoadedBatch& loaded) {
  const int64_t used = 3 * loaded.shape.rows() + (documents_ ? loaded.shape.micro_batch * loaded.shape.tokens : 0);
  stream_.copy(slot.device.data(), slot.host.data(), 4 * used);
  slot.copied->record(stream_);
}

LoadedBatch BatchLoader::load(DataSource& source, std::span<const int64_t> samples) {
  Slot& slot = next_slot();
  LoadedBatch out = place(slot, shape_of(static_cast<int64_t>(samples.size())));
  const int64_t local = out.shape.local_tokens, first = out.shape.first_token, all = out.shape.tokens;
  int32_t* tokens = host_part(slot, out.batch.tokens);
  int32_t* targets = host_part(slot, out.batch.targets);
  int32_t* positions = host_part(slot, out.batch.positions);
  for (std::size_t b = 0; b < samples.size(); ++b) {
    source.read(samples[b], tokens_.data(), documents_ ? starts_.data() : nullptr);
    for (int32_t token : tokens_)
      if (token < 0 || token >= vocabulary_)
        throw Error(ErrorKind::input,
                    "token " + std::to_string(token) + " in sample " + std::to_string(samples[b]) +
                        " of the data is outside the model's vocabulary of " + std::to_string(vocabulary_) +
                        ". The data was made with another tokenizer. Set model.vocab to the data's vocabulary or prepare the data again.");
    const int64_t row = static_cast<int64_t>(b) * local;
    for (int64_t i = 0; i < local; ++i) {
      tokens[row + i] = tokens_[static_cast<std::size_t>(first + i)];
      targets[row + i] = tokens_[static_cast<std::size_t>(first + i + 1)];
      positions[row + i] = static_cast<int32_t>(first + i);
    }
    if (documents_) std::copy(starts_.begin(), starts_.end(), host_part(slot, out.batch.document_start) + static_cast<int64_t>(b) * all);
  }
  out.counted = out.shape.rows();
  enqueue(slot, out);
  return out;
}

LoadedBatch BatchLoader::load_tokens(std::span<const int32_t> given, int64_t sequences) {
  Slot& slot = next_slot();
  LoadedBatch out = place(slot, shape_of(sequences));
  const int64_t local = out.shape.local_tokens, first = out.shape.first_token, all = out.shape.tokens;
  NSP_REQUIRE(static_cast<int64_t>(given.size()) == sequences * all, "given tokens are whole sequences");
  int32_t* tokens = host_part(slot, out.batch.tokens);
  int32_t* targets = host_part(slot, out.batch.targets);
  int32_t* positions = host_part(slot, out.batch.positions);
  for (int64_t b = 0; b < sequences; ++b)
    for (int64_t i = 0; i < local; ++i) {
      tokens[b * local + i] = given[static_cast<std::size_t>(b * all + first + i)];
      targets[b * local + i] = -1;
      positions[b * local + i] = static_cast<int32_t>(first + i);
    }
  if (documents_) std::fill_n(host_part(slot, out.batch.document_start), sequences * all, 0);
  enqueue(slot, out);
  return out;
}

LoadedBatch BatchLoader::load_continuation(std::span<const int32_t> given, int64_t first) {
  const auto n = static_cast<int64_t>(given.size());
  NSP_REQUIRE(!documents_ && largest_.local_tokens == largest_.tokens && n >= 1 && first + n <= largest_.tokens,
              "a continuation lies within one sequence that this rank has whole");
  BatchShape shape = shape_of(1);
  shape.local_tokens = shape.tokens = n;
  shape.first_token = first;
  Slot& slot = next_slot();
  LoadedBatch out = place(slot, shape);
  for (int64_t i = 0; i < n; ++i) {
    host_part(slot, out.batch.tokens)[i] = given[static_cast<std::size_t>(i)];
    host_part(slot, out.batch.targets)[i] = -1;
    host_part(slot, out.batch.positions)[i] = static_cast<int32_t>(first + i);
  }
  enqueue(slot, out);
  return out;
}

}  // namespace nsp
