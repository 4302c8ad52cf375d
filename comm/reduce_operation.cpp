#include "comm/reduce_operation.hpp"

#include <algorithm>
#include <cstring>

#include "comm/sum_ranks.hpp"

namespace nsp {

ReduceOperation::ReduceOperation(const BlockPlan& plan, TensorView in, const std::vector<int64_t>& counts, TensorView out, bool gather)
    : plan_(plan),
      dtype_(in.dtype()),
      item_(static_cast<int64_t>(size_of(in.dtype()))),
      memory_(static_cast<char*>(in.data())),
      result_(static_cast<char*>(out.data())),
      gather_(gather),
      offset_(plan.size + 1),
      sent_(plan.size),
      terms_(plan.size) {
  for (int j = 0; j < plan_.size; ++j) offset_[j + 1] = offset_[j] + counts[j];
  window_ = std::min<int64_t>(plan_.window, blocks(plan_.rank));
  arrived_.resize(window_);
  const int64_t both = gather_ ? 2 : 1;  // contributions, and results in the opposite direction
  for (int j = 0; j < plan_.size; ++j) {
    if (j != plan_.rank) remaining_ += both * (blocks(j) + blocks(plan_.rank));
  }
}

int64_t ReduceOperation::block_bytes(int j, int64_t b) const noexcept {
  return std::min(plan_.block, count(j) - b * plan_.block) * item_;
}

char* ReduceOperation::block_at(int j, int64_t b) const noexcept {
  return in_ + (offset_[j] + b * plan_.block) * item_;
}

char* ReduceOperation::own_result(int64_t b) const noexcept {
  return out_ + b * plan_.block * item_;
}

char* ReduceOperation::slot(int64_t b, int peer) const noexcept {
  const int64_t column = peer < plan_.rank ? peer : peer - 1;
  return slots_ + ((b % window_) * (plan_.size - 1) + column) * std::min(plan_.block, count(plan_.rank)) * item_;
}

int64_t ReduceOperation::slots_bytes() const noexcept {
  return window_ * (plan_.size - 1) * std::min(plan_.block, count(plan_.rank)) * item_;
}

int64_t ReduceOperation::staging_bytes(bool staged) const {
  return slots_bytes() + (staged ? offset_.back() * item_ : 0);
}

void ReduceOperation::place(char* staging, bool staged) {
  const int64_t own = offset_[plan_.rank] * item_, own_bytes = count(plan_.rank) * item_, all_bytes = offset_.back() * item_;
  in_ = staged ? staging : memory_;
  slots_ = staged ? staging + all_bytes : staging;
  out_ = staged || gather_ ? in_ + own : result_;
  if (!staged) return;
  if (all_bytes > 0) copies_in_.push_back({memory_, in_, all_bytes});
  if (gather_ && all_bytes > 0) copies_out_.push_back({memory_, in_, all_bytes});
  if (!gather_ && own_bytes > 0) copies_out_.push_back({result_, out_, own_bytes});
}

void ReduceOperation::begin(MessagePort& port) {
  if (plan_.size == 1) {
    if (count(0) > 0 && out_ != in_) std::memmove(out_, in_, static_cast<size_t>(count(0) * item_));
    return;
  }
  for (int64_t b = 0; b < window_; ++b) post_slot(port, b);
  for (int b = 0; b < plan_.window; ++b) {
    for (int k = 1; k < plan_.size; ++k) send_next(port, (plan_.rank + k) % plan_.size);
  }
}

void ReduceOperation::finished(MessagePort& port, const Message& message) {
  --remaining_;
  switch (message.kind) {
    case MessageKind::contribution_in:
      ++arrived_[message.block % window_];
      sum_ready(port);
      break;
    case MessageKind::contribution_out:
      // The result lands where the contribution was read from, so it cannot be received any earlier.
      if (gather_) {
        port.post_receive(*this, {this, MessageKind::result_in, message.peer, message.block}, block_at(message.peer, message.block),
                          block_bytes(message.peer, message.block));
      }
      send_next(port, message.peer);
      break;
    case MessageKind::result_in:
    case MessageKind::result_out:
      break;
  }
}

void ReduceOperation::post_slot(MessagePort& port, int64_t b) {
  arrived_[b % window_] = 0;
  for (int k = 1; k < plan_.size; ++k) {
    const int peer = (plan_.rank + plan_.size - k) % plan_.size;
    port.post_receive(*this, {this, MessageKind::contribution_in, peer, b}, slot(b, peer), block_bytes(plan_.rank, b));
  }
}

void ReduceOperation::send_next(MessagePort& port, int peer) {
  if (sent_[peer] >= blocks(peer)) return;
  const int64_t b = sent_[peer]++;
  port.post_send(*this, {this, MessageKind::contribution_out, peer, b}, block_at(peer, b), block_bytes(peer, b));
}

void ReduceOperation::sum_ready(MessagePort& port) {
  const int r = plan_.rank;
  while (next_sum_ < blocks(r) && arrived_[next_sum_ % window_] == plan_.size - 1) {
    const int64_t b = next_sum_++;
    for (int k = 0; k < plan_.size; ++k) terms_[k] = k == r ? block_at(r, b) : slot(b, k);
    sum_ranks(dtype_, terms_.data(), plan_.size, own_result(b), block_bytes(r, b) / item_);
    if (gather_) {
      for (int k = 1; k < plan_.size; ++k) {
        const int peer = (r + k) % plan_.size;
        port.post_send(*this, {this, MessageKind::result_out, peer, b}, own_result(b), block_bytes(r, b));
      }
    }
    arrived_[b % window_] = 0;
    if (b + window_ < blocks(r)) post_slot(port, b + window_);
  }
}

}  // namespace nsp
