#include "plugins/autosp/head_exchange.hpp"

#include <algorithm>
#include <memory>

#include "plugins/autosp/head_map.hpp"

namespace nsp {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

int64_t largest_part(const std::vector<int64_t>& cuts) {
  int64_t largest = 0;
  for (std::size_t i = 1; i < cuts.size(); ++i) largest = std::max(largest, cuts[i] - cuts[i - 1]);
  return largest;
}

// Indices [lo, hi) of dimension d, strides kept.
TensorView narrow(const TensorView& x, int d, int64_t lo, int64_t hi) {
  int64_t size[4], stride[4];
  for (int i = 0; i < 4; ++i) {
    size[i] = x.size(i);
    stride[i] = x.stride(i);
  }
  size[d] = hi - lo;
  char* data = static_cast<char*>(x.data()) + lo * stride[d] * static_cast<int64_t>(size_of(x.dtype()));
  return TensorView(data, x.dtype(), {size[0], size[1], size[2], size[3]}, {stride[0], stride[1], stride[2], stride[3]});
}

// A dense view in staging with the sizes of x, `offset` elements behind base.
TensorView packed(char* base, int64_t offset, const TensorView& x) {
  return TensorView(base + offset * static_cast<int64_t>(size_of(x.dtype())), x.dtype(), {x.size(0), x.size(1), x.size(2), x.size(3)});
}

}  // namespace

ExchangeSizes exchange_sizes(const ParallelPlan& plan, int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t micro_batch) {
  const int degree = static_cast<int>(plan.token_cuts.size()) - 1;
  if (degree <= 1) return {};
  int64_t all = 0, largest = 0;  // heads of q, k, v: over all ranks, of the rank with most
  for (const HeadShare& share : head_map(heads, kv_heads, degree)) {
    const int64_t held = share.query_heads() + 2 * share.kv_heads();
    all += held;
    largest = std::max(largest, held);
  }
  return {micro_batch * largest_part(plan.token_cuts) * all * head_dim, micro_batch * plan.token_cuts.back() * largest * head_dim};
}

HeadExchanger::HeadExchanger(const ParallelContext& context)
    : context_(context),
      degree_(static_cast<int>(context.plan.token_cuts.size()) - 1),
      map_(head_map(context.heads, context.kv_heads, degree_)),
      sizes_(exchange_sizes(context.plan, context.heads, context.kv_heads, context.head_dim, context.micro_batch)),
      staging_(context.stream.device(), sizes_.bytes(context.dtype), MemoryKind::device, "staging of autosp") {
  NSP_REQUIRE(context.replica.size() == degree_ && context.replica.rank() == context.position,
              "the group of a replica is in position order");
}

// The heads of a part that `peer` attends with.
std::pair<int64_t, int64_t> HeadExchanger::heads_of(const HeadExchange& part, int peer) const {
  const HeadShare& share = map_[at(peer)];
  return is_query(part) ? std::pair(share.query_lo, share.query_hi) : std::pair(share.kv_lo, share.kv_hi);
}

// What `peer` attends with, of the tokens that this rank holds.
TensorView HeadExchanger::sequence_block(const HeadExchange& part, int peer) const {
  const auto [lo, hi] = heads_of(part, peer);
  return narrow(part.sequence, 2, lo, hi);
}

// What this rank attends with, of the tokens that `peer` holds.
TensorView HeadExchanger::heads_block(const HeadExchange& part, int peer) const {
  return narrow(part.heads, 1, context_.plan.token_cuts[at(peer)], context_.plan.token_cuts[at(peer) + 1]);
}

void HeadExchanger::check(std::span<const HeadExchange> parts) const {
  int64_t sequence = 0, heads = 0;
  for (const HeadExchange& part : parts) {
    const TensorView &s = part.sequence, &h = part.heads;
    NSP_REQUIRE(s.rank() == 4 && h.rank() == 4 && s.dtype() == context_.dtype && h.dtype() == context_.dtype,
                "heads are exchanged as [B,T,H,D] of the dtype that was planned");
    NSP_REQUIRE(s.size(2) == context_.heads || s.size(2) == context_.kv_heads, "what is exchanged has the query or the key/value heads");
    const std::vector<int64_t>& tokens = context_.plan.token_cuts;
    const int i = context_.position;
    const auto [lo, hi] = heads_of(part, i);
    NSP_REQUIRE(s.size(0) == h.size(0) && s.size(3) == h.size(3) && s.size(1) == tokens[at(i) + 1] - tokens[at(i)] &&
                    h.size(1) == tokens.back() && h.size(2) == hi - lo,
                "both views of an exchange have this rank's tokens and heads by the plan");
    for (int peer = 0; peer < degree_; ++peer) sequence += sequence_block(part, peer).elements();
    heads += h.elements();
  }
  NSP_REQUIRE(sequence <= sizes_.sequence_side && heads <= sizes_.heads_side, "an exchange fits the staging that was planned");
}

// Packs, and exchanges. What arrives lies by peer, then by part; behind it this rank's own blocks of sums. Its other blocks go to
// their place at once.
HeadExchanger::Arrived HeadExchanger::send(std::span<const HeadExchange> parts, bool to_heads) {
  const DType dtype = context_.dtype;
  const Ops ops(context_.stream);
  char* const out = static_cast<char*>(staging_.data());
  char* const in = out + (to_heads ? sizes_.sequence_side : sizes_.heads_side) * static_cast<int64_t>(size_of(dtype));
  std::vector<int64_t> sent(at(degree_), 0), received(at(degree_), 0);
  Arrived arrived{in, std::vector<std::vector<int64_t>>(at(degree_), std::vector<int64_t>(parts.size(), -1))};
  int64_t out_size = 0, in_size = 0;
  for (int peer = 0; peer < degree_; ++peer) {
    if (peer == context_.position) continue;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const TensorView block = to_heads ? sequence_block(parts[i], peer) : heads_block(parts[i], peer);
      ops.copy(packed(out, out_size, block), block);
      out_size += block.elements();
      sent[at(peer)] += block.elements();
      arrived.offset[at(peer)][i] = in_size;
      const int64_t elements = (to_heads ? heads_block(parts[i], peer) : sequence_block(parts[i], peer)).elements();
      received[at(peer)] += elements;
      in_size += elements;
    }
  }
  int64_t own_offset = in_size;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int self = context_.position;
    const TensorView source = to_heads ? sequence_block(parts[i], self) : heads_block(parts[i], self);
    if (!to_heads && replicated(parts[i])) {
      arrived.offset[at(self)][i] = own_offset;
      ops.copy(packed(in, own_offset, source), source);
      own_offset += source.elements();
    } else {
      ops.copy(to_heads ? heads_block(parts[i], self) : sequence_block(parts[i], self), source);
    }
  }
  // Shared with the collective, which queries it until it starts. Unpacking of the exchange before lies behind it too, so the
  // staging is free for what arrives.
  auto ready = std::make_shared<Event>(context_.stream.device(), "autosp pack");
  ready->record(context_.stream);
  context_.wait.wait(context_.replica.all_to_all(TensorView(out, dtype, {out_size}), sent, TensorView(in, dtype, {in_size}), received,
                                                 After{std::move(ready), nullptr}));
  return arrived;
}

// Blocks that have one origin each.
void HeadExchanger::place(const HeadExchange& part, std::size_t index, bool to_heads, const Arrived& arrived) {
  const Ops ops(context_.stream);
  for (int peer = 0; peer < degree_; ++peer) {
    if (peer == context_.position) continue;
    const TensorView target = to_heads ? heads_block(part, peer) : sequence_block(part, peer);
    ops.copy(target, packed(arrived.base, arrived.offset[at(peer)][index], target));
  }
}

// Replicated key/value heads, one a rank: the ranks of a head are neighbours. Their blocks are dense in staging, so they are summed
// there, into the first one's, and then go to this rank's tokens.
void HeadExchanger::sum_replicas(const HeadExchange& part, std::size_t index, const Arrived& arrived) {
  const Ops ops(context_.stream);
  for (int first = 0; first < degree_;) {
    const TensorView target = sequence_block(part, first);
    const TensorView sum = packed(arrived.base, arrived.offset[at(first)][index], target);
    int next = first + 1;
    for (; next < degree_ && map_[at(next)].kv_lo == map_[at(first)].kv_lo; ++next)
      ops.axpy(sum.reshape({sum.elements()}), packed(arrived.base, arrived.offset[at(next)][index], target).reshape({sum.elements()}),
               1.0f);
    ops.copy(target, sum);
    first = next;
  }
}

void HeadExchanger::exchange(std::span<const HeadExchange> parts, bool to_heads) {
  if (parts.empty()) return;
  NSP_REQUIRE(degree_ > 1, "heads are exchanged only where they are split");
  check(parts);
  const Arrived arrived = send(parts, to_heads);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!to_heads && replicated(parts[i]))
      sum_replicas(parts[i], i, arrived);
    else
      place(parts[i], i, to_heads, arrived);
  }
}

}  // namespace nsp
