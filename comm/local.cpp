#include "comm/local.hpp"

#include <numeric>

#include "comm/exchange.hpp"
#include "comm/local_transport.hpp"

namespace nsp {

LocalWorld::LocalWorld(int ranks) {
  NSP_REQUIRE(ranks >= 1, "a world has at least one rank");
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  world_ = std::make_shared<LocalGroup>(std::make_shared<LocalJob>(), std::move(all));
}

LocalWorld::~LocalWorld() = default;

std::unique_ptr<Communicator> LocalWorld::communicator(int rank, CollectiveRing& ring, int64_t block_elements, Device* device) {
  const int ranks = static_cast<int>(world_->world_ranks().size());
  NSP_REQUIRE(rank >= 0 && rank < ranks, "the rank is one of the world");
  CommContext context{ring};
  context.block_elements = block_elements;
  return std::make_unique<ExchangeCommunicator>(std::make_unique<LocalTransport>(world_, rank), "world", context, device);
}

}  // namespace nsp
