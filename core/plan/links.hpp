// What crosses which kind of link: bytes a step inside hosts and between them, from the layout of the plan on the topology.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/discover/topology.hpp"
#include "core/plan/plan.hpp"
#include "core/tensor/param_table.hpp"
#include "nsp/parallel_strategy.hpp"
#include "nsp/sync_policy.hpp"

namespace nsp {

struct LinkBytes {
  double inside = 0, between = 0;  // hosts
  double total() const { return inside + between; }
  LinkBytes& operator+=(const LinkBytes& other) {
    inside += other.inside;
    between += other.between;
    return *this;
  }
};

// Bytes that all ranks together hand to the transport for others.
struct LinkLine {
  std::string what;
  LinkBytes per_step;  // averaged over steps
  LinkBytes at_once;   // in a step where it happens
  bool of_policy = false;
  bool summary = false;  // sums up other lines, so it does not count again
};

// Bytes of an element of what is exchanged inside a replica.
struct ElementBytes {
  int64_t weights = 4, gradients = 4, activations = 4;
};

struct Links {
  std::vector<LinkLine> lines;
  double busiest_host = 0;    // bytes that one host sends to others in an average step, at most
  LinkBytes replica() const;  // a step, inside replicas
  LinkBytes policy() const;   // a step, averaged
  LinkBytes at_once() const;  // in a step where everything happens
};

// What is exchanged around attention.
struct HeadSizes {
  int64_t layers = 0, head_dim = 0;
  std::vector<HeadShare> shares;  // by position in a replica
};

// traffic: of the sync policy; its bytes are spread evenly over the pairs of ranks of equal position. REQUIRES a rank in the
// topology for each of the plan, and a share for each position.
Links count_links(const JobPlan& plan, const ParamTable& table, const HeadSizes& heads, const std::vector<TrafficLine>& traffic,
                  const ElementBytes& element, const Topology& topology);

// The table for people.
std::string links_text(const Links& links);

}  // namespace nsp
