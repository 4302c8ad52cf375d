// Every collective that only moves data: all_to_all, all_gather, broadcast, send, recv. One stream of blocks per peer and direction.
#pragma once

#include <vector>

#include "comm/operation.hpp"

namespace nsp {

// Offsets and lengths in bytes, of input or output.
struct Piece {
  int64_t offset = 0, bytes = 0;
};

struct Move {
  char* in = nullptr;
  char* out = nullptr;
  int64_t in_bytes = 0, out_bytes = 0;
  int64_t block_bytes = 1;
  std::vector<Piece> send;  // [size] of in; the own entry is copied to recv[rank] of out
  std::vector<Piece> recv;  // [size] of out
};

class MoveOperation final : public Operation {
 public:
  MoveOperation(const BlockPlan& plan, Move move);
  int64_t staging_bytes(bool staged) const override;
  void place(char* staging, bool staged) override;
  void begin(MessagePort& port) override;
  void finished(MessagePort& port, const Message& message) override;

 private:
  void send_next(MessagePort& port, int peer);
  void receive_next(MessagePort& port, int peer);

  int rank_, size_;
  Move m_;
  char* from_ = nullptr;  // host addresses of in and out
  char* to_ = nullptr;
  bool staged_ = false;
  std::vector<int64_t> sent_, received_;  // [size] blocks posted
};

}  // namespace nsp
