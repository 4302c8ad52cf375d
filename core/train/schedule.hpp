// The learning rate as a function of the step.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

enum class ScheduleKind { constant, cosine, linear, wsd };

struct LrSchedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double peak = 3e-4;
  double min_ratio = 0.1;  // of the peak, at the end of cosine, linear and wsd
  int64_t warmup = 100;    // steps
  int64_t steps = 1;       // of the whole run
  double wsd_decay = 0.1;  // share of the run that wsd decays over

  // Step t = 0 ... steps-1. Warm-up rises linearly from peak/warmup at t = 0 to the peak at t = warmup-1.
  // cosine: Loshchilov and Hutter, arXiv 1608.03983, one cycle. wsd: constant, then 1 - sqrt decay over the last part
  // (Haegele et al., arXiv 2405.18392).
  double at(int64_t t) const;
};

ScheduleKind schedule_kind(const std::string& name);

}  // namespace nsp
