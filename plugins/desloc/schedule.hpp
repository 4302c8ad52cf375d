// When each kind of state is averaged, as a function of the step alone, and which sets of periods make sense.
#pragma once

#include <cstdint>
#include <string>

#include "nsp/options.hpp"
#include "nsp/plugin.hpp"

namespace nsp {

// Periods in steps, `never` for inf: parameters x, first moments u, second moments v.
struct DeslocSchedule {
  int64_t kx = 0, ku = 0, kv = 0;
  int64_t warmup_steps = 0;  // all periods are 1 for t < warmup_steps

  // A state with this period is averaged at step t (t = finished steps).
  bool due(int64_t period, int64_t t) const noexcept {
    if (t <= 0) return false;
    return t < warmup_steps || (period != never && t % period == 0);
  }
  // Whether there is any step at which it is averaged.
  bool ever_due(int64_t period) const noexcept { return period != never || warmup_steps > 1; }
};

// "96", or "inf".
std::string period_text(int64_t period);

// Reads the options of section desloc. Error(usage) if a value is out of range.
DeslocSchedule read_schedule(const Options& options);

// Compares the periods of moments with that of the parameters, for the moments that the optimizer has. Error(usage) for a
// period given by the user without its moment, and for moments averaged more often than parameters.
void check_schedule(const DeslocSchedule& schedule, const Options& options, bool has_moment1, bool has_moment2);

// Says what is ignored or unwise about a checked schedule.
void describe_schedule(const DeslocSchedule& schedule, const Options& options, Log& log, bool has_moment1, bool has_moment2);

}  // namespace nsp
