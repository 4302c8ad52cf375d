#include "core/train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "nsp/error.hpp"

namespace nsp {

double LrSchedule::at(int64_t t) const {
  if (t < warmup) return peak * static_cast<double>(t + 1) / static_cast<double>(warmup);
  const double floor = peak * min_ratio;
  const auto share = [](double done, double all) { return all > 0 ? std::clamp(done / all, 0.0, 1.0) : 1.0; };
  const double after_warmup = share(static_cast<double>(t - warmup), static_cast<double>(steps - warmup));
  switch (kind) {
    case ScheduleKind::constant:
      return peak;
    case ScheduleKind::cosine:
      return floor + (peak - floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * after_warmup));
    case ScheduleKind::linear:
      return floor + (peak - floor) * (1.0 - after_warmup);
    case ScheduleKind::wsd: {
      const double decay_steps = wsd_decay * static_cast<double>(steps);
      const double begin = static_cast<double>(steps) - decay_steps;
      if (static_cast<double>(t) < begin) return peak;
      return floor + (peak - floor) * (1.0 - std::sqrt(share(static_cast<double>(t) - begin, decay_steps)));
    }
  }
  return peak;
}

ScheduleKind schedule_kind(const std::string& name) {
  if (name == "constant") return ScheduleKind::constant;
  if (name == "cosine") return ScheduleKind::cosine;
  if (name == "linear") return ScheduleKind::linear;
  if (name == "wsd") return ScheduleKind::wsd;
  throw Error(ErrorKind::usage,
              "train.schedule = " + name + " is not known. Available are constant, cosine, linear, wsd. Choose one of them.");
}

}  // namespace nsp
