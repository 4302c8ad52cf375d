#include "comm/move_operation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nsp {
namespace {

// Messages in flight per peer and direction. They need no staging, so it is large: a transfer then needs few progress() calls.
constexpr int kWindow = 32;

constexpr int64_t kAlignment = 256;
int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

MoveOperation::MoveOperation(const BlockPlan& plan, Move move)
    : rank_(plan.rank), size_(plan.size), m_(std::move(move)), sent_(plan.size), received_(plan.size) {
  NSP_REQUIRE(m_.send[rank_].bytes == m_.recv[rank_].bytes, "a rank receives from itself what it sends to itself");
  for (int j = 0; j < size_; ++j) {
    if (j != rank_) remaining_ += blocks_of(m_.send[j].bytes, m_.block_bytes) + blocks_of(m_.recv[j].bytes, m_.block_bytes);
  }
}

int64_t MoveOperation::staging_bytes(bool staged) const {
  return staged ? aligned(m_.in_bytes) + m_.out_bytes : 0;
}

void MoveOperation::place(char* staging, bool staged) {
  staged_ = staged;
  from_ = staged ? staging : m_.in;
  to_ = staged ? staging + aligned(m_.in_bytes) : m_.out;
  if (!staged) return;
  if (m_.in_bytes > 0) copies_in_.push_back({m_.in, from_, m_.in_bytes});
  for (int j = 0; j < size_; ++j) {
    const Piece& to = m_.recv[j];
    if (to.bytes == 0) continue;
    char* target = m_.out + to.offset;
    const char* own = m_.in + m_.send[j].offset;
    if (j != rank_) {
      copies_out_.push_back({target, to_ + to.offset, to.bytes});
    } else if (target != own) {
      copies_out_.push_back({target, from_ + m_.send[j].offset, to.bytes});
    }
  }
}

void MoveOperation::begin(MessagePort& port) {
  const Piece &own = m_.send[rank_], &place = m_.recv[rank_];
  if (!staged_ && own.bytes > 0 && from_ + own.offset != to_ + place.offset) {
    std::memcpy(to_ + place.offset, from_ + own.offset, static_cast<size_t>(own.bytes));
  }
  // Each rank starts at its successor, so that not all of them send to rank 0 first. Receives first: what then comes is expected.
  for (int k = 1; k < size_; ++k) {
    for (int b = 0; b < kWindow; ++b) receive_next(port, (rank_ + size_ - k) % size_);
  }
  for (int b = 0; b < kWindow; ++b) {
    for (int k = 1; k < size_; ++k) send_next(port, (rank_ + k) % size_);
  }
}

void MoveOperation::finished(MessagePort& port, const Message& message) {
  --remaining_;
  if (message.kind == MessageKind::contribution_in) {
    receive_next(port, message.peer);
  } else {
    send_next(port, message.peer);
  }
}

void MoveOperation::send_next(MessagePort& port, int peer) {
  const Piece& piece = m_.send[peer];
  const int64_t lo = sent_[peer] * m_.block_bytes;
  if (lo >= piece.bytes) return;
  const Message message{this, MessageKind::contribution_out, peer, sent_[peer]++};
  port.post_send(*this, message, from_ + piece.offset + lo, std::min(m_.block_bytes, piece.bytes - lo));
}

void MoveOperation::receive_next(MessagePort& port, int peer) {
  const Piece& piece = m_.recv[peer];
  const int64_t lo = received_[peer] * m_.block_bytes;
  if (lo >= piece.bytes) return;
  const Message message{this, MessageKind::contribution_in, peer, received_[peer]++};
  port.post_receive(*this, message, to_ + piece.offset + lo, std::min(m_.block_bytes, piece.bytes - lo));
}

}  // namespace nsp
