#include "core/plan/links.hpp"

#include <algorithm>
#include <cstdio>

#include "core/device/byte_text.hpp"

namespace nsp {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

class Counter {
 public:
  Counter(const JobPlan& plan, const ParamTable& table, const Topology& topology) : plan_(plan) {
    const std::vector<HostRanks> hosts = topology.hosts();
    host_of_.resize(topology.ranks.size());
    for (std::size_t h = 0; h < hosts.size(); ++h)
      for (int rank : hosts[h].ranks) host_of_[at(rank)] = static_cast<int>(h);
    sent_by_host_.resize(hosts.size());
    for (int p = 0; p < plan.replica_size; ++p) {
      owned_.push_back(0);
      for (const Range& range : plan.owned(table, p)) owned_.back() += static_cast<double>(range.size());
    }
  }

  // Gradients: j's part to its owner j. Weights: i's part to all. Heads around attention: forward q, k, v become head shards and
  // the output comes back; backward the output's gradient becomes head shards, and those of q, k, v come back. Keys and values that
  // several positions hold go to each of them, and a gradient comes back from each.
  std::vector<LinkLine> inside_replicas(const HeadSizes& sizes, const ElementBytes& element) {
    const int s = plan_.replica_size;
    std::vector<double> tokens, heads;  // heads: of q, k, v and the output, halved
    for (int p = 0; p < s; ++p) {
      tokens.push_back(static_cast<double>(plan_.parallel.token_cuts[at(p) + 1] - plan_.parallel.token_cuts[at(p)]));
      heads.push_back(static_cast<double>(sizes.shares[at(p)].query_heads() + sizes.shares[at(p)].kv_heads()));
    }
    const double width = static_cast<double>(sizes.layers * sizes.head_dim);
    std::vector<LinkLine> lines(3);
    lines[0].what = "gradients to their owners";
    lines[1].what = "weights from their owners";
    lines[2].what = "sequence shards to head shards and back";
    for (int i = 0; i < s; ++i)
      for (int j = 0; j < s; ++j) {
        if (i == j) continue;
        const double elements = 2 * (tokens[at(i)] * heads[at(j)] + tokens[at(j)] * heads[at(i)]);
        for (int m = 0; m < plan_.replicas; ++m) {
          const int from = m * s + i, to = m * s + j;
          add(lines[0].at_once, from, to, owned_[at(j)] * static_cast<double>(element.gradients));
          add(lines[1].at_once, from, to, owned_[at(i)] * static_cast<double>(element.weights));
          add(lines[2].at_once, from, to,
              elements * width * static_cast<double>(plan_.shares[at(m)]) * static_cast<double>(element.activations));
        }
      }
    for (LinkLine& line : lines) line.per_step = line.at_once;
    return lines;
  }

  // By position: the group of its replicas carries the part that it owns.
  LinkLine of_policy(const TrafficLine& traffic) {
    LinkLine line{traffic.what, {}, {}, true, traffic.summary};
    double all = 0;
    for (double owned : owned_) all += owned;
    const int r = plan_.replicas, s = plan_.replica_size;
    for (int p = 0; p < s && r > 1; ++p) {
      std::vector<double> members(sent_by_host_.size());  // of the group, by host
      for (int m = 0; m < r; ++m) members[at(host_of_[at(m * s + p)])] += 1;
      const double part = owned_[at(p)] / all, pairs = static_cast<double>(r) * (r - 1);
      double between = 0;
      for (std::size_t h = 0; h < members.size(); ++h) {
        const double share = members[h] * (r - members[h]) / pairs;
        between += share;
        if (!traffic.summary) sent_by_host_[h] += traffic.bytes_per_step * part * share;
      }
      line.per_step += {traffic.bytes_per_step * part * (1 - between), traffic.bytes_per_step * part * between};
      line.at_once += {traffic.bytes_at_once * part * (1 - between), traffic.bytes_at_once * part * between};
    }
    return line;
  }

  double busiest_host() const { return *std::max_element(sent_by_host_.begin(), sent_by_host_.end()); }

 private:
  void add(LinkBytes& bytes, int from, int to, double n) {
    if (host_of_[at(from)] == host_of_[at(to)]) {
      bytes.inside += n;
    } else {
      bytes.between += n;
      sent_by_host_[at(host_of_[at(from)])] += n;
    }
  }

  const JobPlan& plan_;
  std::vector<int> host_of_;          // by rank
  std::vector<double> sent_by_host_;  // to other hosts, a step
  std::vector<double> owned_;         // elements, by position
};

std::string row_text(const std::string& what, const LinkBytes& per_step, const LinkBytes& at_once) {
  const auto text = [](double bytes) { return bytes > 0 ? byte_text(static_cast<int64_t>(bytes)) : std::string("-"); };
  char row[200];
  std::snprintf(row, sizeof row, "  %-58s %12s %12s %16.0f %16.0f\n", what.c_str(), text(per_step.inside).c_str(),
                text(per_step.between).c_str(), per_step.total(), at_once.total());
  return row;
}

}  // namespace

LinkBytes Links::replica() const {
  LinkBytes sum;
  for (const LinkLine& line : lines)
    if (!line.of_policy) sum += line.per_step;
  return sum;
}

LinkBytes Links::policy() const {
  LinkBytes sum;
  for (const LinkLine& line : lines)
    if (line.of_policy && !line.summary) sum += line.per_step;
  return sum;
}

LinkBytes Links::at_once() const {
  LinkBytes sum;
  for (const LinkLine& line : lines)
    if (!line.summary) sum += line.at_once;
  return sum;
}

Links count_links(const JobPlan& plan, const ParamTable& table, const HeadSizes& heads, const std::vector<TrafficLine>& traffic,
                  const ElementBytes& element, const Topology& topology) {
  NSP_REQUIRE(static_cast<int>(topology.ranks.size()) == plan.ranks, "the topology has a rank for each of the plan");
  Counter counter(plan, table, topology);
  Links links;
  if (plan.replica_size > 1) links.lines = counter.inside_replicas(heads, element);
  for (const TrafficLine& line : traffic) links.lines.push_back(counter.of_policy(line));
  links.busiest_host = counter.busiest_host();
  return links;
}

std::string links_text(const Links& links) {
  char row[200];
  std::snprintf(row, sizeof row, "  %-58s %12s %12s %16s %16s\n", "sent by all ranks together, an average step", "inside hosts", "between",
                "bytes", "bytes at once");
  std::string text = row;
  for (const LinkLine& line : links.lines) text += row_text(line.what, line.per_step, line.at_once);
  LinkBytes all = links.replica();
  all += links.policy();
  text += row_text("all", all, links.at_once());
  if (links.busiest_host > 0)
    text += "  the host that sends most to others sends " + byte_text(static_cast<int64_t>(links.busiest_host)) + " in an average step\n";
  return text;
}

}  // namespace nsp
