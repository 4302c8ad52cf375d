#include "plugins/autosp/head_exchange.hpp"

#include <algorithm>
#include <memory>

#include "plugins/autosp/degree.hpp"

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
  const int64_t head_shard = largest_part(near_equal_cuts(heads, degree)) + 2 * largest_part(near_equal_cuts(kv_heads, degree));
  return {micro_batch * largest_part(plan.token_cuts) * (heads + 2 * kv_heads) * head_dim,
          micro_batch * plan.token_cuts.back() * head_shard * head_dim};
}

HeadExchanger::HeadExchanger(const ParallelContext& context)
    : context_(context),
      degree_(static_cast<int>(context.plan.token_cuts.size()) - 1),
      sizes_(exchange_sizes(context.plan, context.heads, context.kv_heads, context.head_dim, context.micro_batch)),
      staging_(context.stream.device(), sizes_.bytes(), MemoryKind::device, "staging of autosp") {
  NSP_REQUIRE(context.replica.size() == degree_ && context.replica.rank() == context.position,
              "the group of a replica is in position order");
}

// What `peer` attends with, of the tokens that this rank holds.
TensorView HeadExchanger::sequence_block(const HeadExchange& part, int peer) const {
  const std::vector<int64_t> cuts = near_equal_cuts(part.sequence.size(2), degree_);
  return narrow(part.sequence, 2, cuts[at(peer)], cuts[at(peer) + 1]);
}

// What this rank attends with, of the tokens that `peer` holds.
TensorView HeadExchanger::heads_block(const HeadExchange& part, int peer) const {
  return narrow(part.heads, 1, context_.plan.token_cuts[at(peer)], context_.plan.token_cuts[at(peer) + 1]);
}

void HeadExchanger::check(std::span<const HeadExchange> parts) const {
  int64_t sequence = 0, heads = 0;
  for (const HeadExchange& part : parts) {
    const TensorView &s = part.sequence, &h = part.heads;
    NSP_REQUIRE(
        s.rank() == 4 && h.rank() == 4 && s.dtype() == h.dtype() && s.dtype() == parts[0].sequence.dtype() && size_of(s.dtype()) <= 4,
        "heads are exchanged as [B,T,H,D] of one dtype, fp32 or shorter");
    const std::vector<int64_t> cuts = near_equal_cuts(s.size(2), degree_);
    const std::vector<int64_t>& tokens = context_.plan.token_cuts;
    const int i = context_.position;
    NSP_REQUIRE(s.size(0) == h.size(0) && s.size(3) == h.size(3) && s.size(1) == tokens[at(i) + 1] - tokens[at(i)] &&
                    h.size(1) == tokens.back() && h.size(2) == cuts[at(i) + 1] - cuts[at(i)],
                "both views of an exchange have this rank's tokens and heads by the plan");
    sequence += s.elements();
    heads += h.elements();
  }
  NSP_REQUIRE(sequence <= sizes_.sequence_side && heads <= sizes_.heads_side, "an exchange fits the staging that was planned");
}

void HeadExchanger::exchange(std::span<const HeadExchange> parts, bool to_heads) {
  if (parts.empty()) return;
  NSP_REQUIRE(degree_ > 1, "heads are exchanged only where they are split");
  check(parts);
  const DType dtype = parts[0].sequence.dtype();
  const auto source = [&](const HeadExchange& part, int peer) { return to_heads ? sequence_block(part, peer) : heads_block(part, peer); };
  const auto target = [&](const HeadExchange& part, int peer) { return to_heads ? heads_block(part, peer) : sequence_block(part, peer); };
  const Ops ops(context_.stream);
  char* const out = static_cast<char*>(staging_.data());
  char* const in = out + (to_heads ? sizes_.sequence_side : sizes_.heads_side) * static_cast<int64_t>(sizeof(float));

  std::vector<int64_t> sent(at(degree_), 0), received(at(degree_), 0);
  int64_t out_size = 0, in_size = 0;
  for (int peer = 0; peer < degree_; ++peer) {
    for (const HeadExchange& part : parts) {
      const TensorView block = source(part, peer);
      if (peer == context_.position) {
        ops.copy(target(part, peer), block);
        continue;
      }
      ops.copy(packed(out, out_size, block), block);
      out_size += block.elements();
      sent[at(peer)] += block.elements();
      received[at(peer)] += target(part, peer).elements();
    }
    in_size += received[at(peer)];
  }

  // Shared with the collective, which queries it until it starts. Unpacking of the exchange before lies behind it too, so the
  // staging is free for what arrives.
  auto ready = std::make_shared<Event>(context_.stream.device(), "autosp pack");
  ready->record(context_.stream);
  context_.wait.wait(context_.replica.all_to_all(TensorView(out, dtype, {out_size}), sent, TensorView(in, dtype, {in_size}), received,
                                                 After{std::move(ready), nullptr}));

  int64_t offset = 0;
  for (int peer = 0; peer < degree_; ++peer) {
    if (peer == context_.position) continue;
    for (const HeadExchange& part : parts) {
      const TensorView block = target(part, peer);
      ops.copy(block, packed(in, offset, block));
      offset += block.elements();
    }
  }
}

}  // namespace nsp
