#include "core/train/breakdown.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "core/device/byte_text.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

struct Line {
  const char* name;
  double (*of)(const Breakdown&);
  bool always;  // others only where there is something
};

// The parts in the order of the table; a name that is indented is a part of the line above.
constexpr Line lines[] = {
    {"compute", [](const Breakdown& b) { return b.compute; }, true},
    {"data", [](const Breakdown& b) { return b.data; }, true},
    {"optimizer", [](const Breakdown& b) { return b.optimizer; }, true},
    {"communication, exposed", [](const Breakdown& b) { return b.exposed(); }, true},
    {"  replicas' sums and averages", [](const Breakdown& b) { return b.averages; }, false},
    {"  agreeing on loss and norm", [](const Breakdown& b) { return b.vectors; }, false},
    {"  exchanges inside the model", [](const Breakdown& b) { return b.exchanges; }, false},
    {"  weights inside a replica", [](const Breakdown& b) { return b.gather; }, false},
    {"evaluation", [](const Breakdown& b) { return b.evaluation; }, true},
    {"checkpoints", [](const Breakdown& b) { return b.checkpoint; }, true},
    {"rest", [](const Breakdown& b) { return b.rest(); }, true},
    {"communication, hidden", [](const Breakdown& b) { return b.hidden; }, true},
};

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[320];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string name_of(int rank, const RunFacts& facts) {
  return "rank " + std::to_string(rank) + " on " + facts.ranks[static_cast<std::size_t>(rank)].host;
}

template <class Value>
int largest(std::span<const RankReport> reports, Value value) {
  const auto less = [&](const RankReport& a, const RankReport& b) { return value(a) < value(b); };
  return static_cast<int>(std::max_element(reports.begin(), reports.end(), less) - reports.begin());
}

}  // namespace

EndReport summarize(std::span<const RankReport> reports, const RunFacts& facts) {
  NSP_REQUIRE(!reports.empty() && reports.size() == facts.ranks.size(), "every rank reports, and its host is known");
  EndReport end;
  for (const RankReport& report : reports)
    for (double Breakdown::*part :
         {&Breakdown::total, &Breakdown::compute, &Breakdown::data, &Breakdown::optimizer, &Breakdown::exchanges, &Breakdown::averages,
          &Breakdown::vectors, &Breakdown::gather, &Breakdown::evaluation, &Breakdown::checkpoint, &Breakdown::hidden})
      end.mean.*part += report.time.*part / static_cast<double>(reports.size());
  end.least = reports[static_cast<std::size_t>(largest(reports, [](const RankReport& r) { return -r.time.exposed(); }))].time;
  end.slowest = largest(reports, [](const RankReport& r) { return r.time.work(); });
  if (end.mean.work() > 0) end.imbalance = reports[static_cast<std::size_t>(end.slowest)].time.work() / end.mean.work();
  end.largest = largest(reports, [](const RankReport& r) { return r.peak_resident; });
  end.peak_resident = reports[static_cast<std::size_t>(end.largest)].peak_resident;
  end.hints = end_hints(end, facts);
  return end;
}

std::string end_text(const EndReport& end, std::span<const RankReport> reports, const RunFacts& facts) {
  const bool many = reports.size() > 1;
  std::string text = formatted("time of %zu rank%s, %.1f s%s\n", reports.size(), many ? "s" : "", end.mean.total,
                               many ? ", as the mean and the largest of the ranks" : "");
  for (const Line& line : lines) {
    const int worst = largest(reports, [&](const RankReport& r) { return line.of(r.time); });
    const double mean = line.of(end.mean), most = line.of(reports[static_cast<std::size_t>(worst)].time), total = end.mean.total;
    if (!line.always && most < 0.0005 * total) continue;
    const auto share = [&](double seconds) { return total > 0 ? 100.0 * seconds / total : 0.0; };
    text += formatted("  %-30s %8.1f%%", line.name, share(mean));
    if (many) text += formatted(" %8.1f%%  rank %d", share(most), worst);
    text += "\n";
  }
  if (many) text += formatted("  imbalance: %s worked %.2f times the mean\n", name_of(end.slowest, facts).c_str(), end.imbalance);
  text += formatted("  memory: planned %s a rank; largest resident set %s", byte_text(facts.planned_bytes).c_str(),
                    byte_text(static_cast<int64_t>(end.peak_resident)).c_str());
  if (many) text += ", " + name_of(end.largest, facts);
  for (const std::string& hint : end.hints) text += "\nhint: " + hint;
  return text;
}

std::vector<std::string> end_hints(const EndReport& end, const RunFacts& facts) {
  std::vector<std::string> hints;
  const Breakdown& b = end.mean;
  const auto percent = [&](double seconds) { return b.total > 0 ? 100.0 * seconds / b.total : 0.0; };
  const bool uneven = facts.ranks.size() > 1 && end.imbalance > 1.10;
  const Breakdown& w = end.least;
  if (percent(w.exposed()) > 20) {
    const std::string what = formatted(uneven ? "even the rank that waited least waited for communication %.0f%% of the time. "
                                              : "ranks waited for communication %.0f%% of the time. ",
                                       percent(w.exposed()));
    const double inside = w.exchanges + w.gather;
    if (inside >= w.averages && inside >= w.vectors)
      hints.push_back(what + "Most of it is inside the replicas: lower " + facts.parallel + ".degree, or keep a replica on one host");
    else if (w.averages >= w.vectors && facts.sync == "ddp")
      hints.push_back(what +
                      "Most of it is for gradient sums: --plugins desloc averages rarely, and a larger train.global_batch sums less often");
    else if (w.averages >= w.vectors)
      hints.push_back(what + "Most of it is for averages of replicas: larger periods (" + facts.sync + ".kx, ku, kv) average less often");
    else
      hints.push_back(what + "Most of it is agreeing at the end of steps: a larger train.global_batch makes steps longer");
  }
  if (uneven)
    hints.push_back(name_of(end.slowest, facts) +
                    formatted(" worked %.0f%% longer than the mean, and the others waited. Look for other load on that host, give the rank "
                              "more cores (train.threads, mpirun --bind-to none), or leave the host out",
                              100.0 * (end.imbalance - 1)));
  if (percent(b.data) > 5)
    hints.push_back(formatted("reading data took %.0f%%. Put the token files of data.path on a local disk", percent(b.data)));
  if (percent(b.checkpoint) > 5)
    hints.push_back(
        formatted("checkpoints took %.0f%%. Raise train.checkpoint_every, or put run.dir on a faster disk", percent(b.checkpoint)));
  if (percent(b.evaluation) > 10)
    hints.push_back(formatted("evaluation took %.0f%%. Raise train.eval_every or lower train.eval_batches", percent(b.evaluation)));
  if (percent(b.rest()) > 10)
    hints.push_back(
        formatted("%.0f%% went beside the steps, mostly into log lines. Raise run.log_every, or make steps longer with "
                  "train.global_batch",
                  percent(b.rest())));
  // Memory of the host that has least for each of its ranks.
  double room = 0;
  for (const RunFacts::Rank& rank : facts.ranks)
    if (const double share = static_cast<double>(rank.host_memory) / rank.ranks_on_host; share > 0 && (room == 0 || share < room))
      room = share;
  if (room > 0 && end.peak_resident > 0.9 * room)
    hints.push_back(name_of(end.largest, facts) + " used " + byte_text(static_cast<int64_t>(end.peak_resident)) + " of the " +
                    byte_text(static_cast<int64_t>(room)) +
                    " that each rank of its host may have. Lower train.micro_batch, or start fewer ranks on a host");
  else if (facts.micro_steps > 1 && facts.tokens_at_once < 1024 &&
           (room == 0 || end.peak_resident + static_cast<double>(facts.planned_bytes) < 0.7 * room))
    hints.push_back(
        formatted("each rank computed only %lld tokens at once, %lld times a step, and memory is left. Raise train.micro_batch (now %lld)",
                  static_cast<long long>(facts.tokens_at_once), static_cast<long long>(facts.micro_steps),
                  static_cast<long long>(facts.micro_batch)));
  return hints;
}

double peak_resident_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (word == "VmHWM:" && in >> word) return 1024.0 * std::atof(word.c_str());
  return 0;
}

}  // namespace nsp
