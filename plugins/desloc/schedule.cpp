#include "plugins/desloc/schedule.hpp"

#include "nsp/error.hpp"

namespace nsp {
namespace {

struct MomentPeriod {
  const char* option;  // "ku"
  const char* moment;  // "first"
  int64_t period;
  int64_t recommended;  // multiple of kx (Iacob et al., section 5: K_u = 3 K_x, K_v = 6 K_x)
};

void refuse_if_faster_than_parameters(const DeslocSchedule& schedule, const MomentPeriod& m, bool given) {
  if (m.period == never || (schedule.kx != never && m.period >= schedule.kx)) return;
  const std::string key = std::string("desloc.") + m.option;
  const std::string what = key + " " + period_text(m.period) + (given ? "" : " (the default)") + " is less than desloc.kx " +
                           period_text(schedule.kx) + ". Parameters must be averaged at least as often as any optimizer state. ";
  if (schedule.kx == never) throw Error(ErrorKind::usage, what + "Set --" + key + " inf, or a finite --desloc.kx.");
  throw Error(ErrorKind::usage, what + "Set --" + key + " " + std::to_string(m.recommended * schedule.kx) + " (" +
                                    std::to_string(m.recommended) + " kx, as the paper recommends), or inf, or a smaller --desloc.kx.");
}

void check_moment(const DeslocSchedule& schedule, const MomentPeriod& m, const Options& options, bool has_moment) {
  const bool given = options.given(m.option);
  // A run that goes on with another optimizer cannot take back what was given for the one before.
  const bool given_now = given && options.values().at(m.option).origin.rfind("checkpoint", 0) != 0;
  if (has_moment) {
    refuse_if_faster_than_parameters(schedule, m, given);
  } else if (given_now) {
    const std::string key = std::string("desloc.") + m.option;
    throw Error(ErrorKind::usage, key + " is given, but the optimizer keeps no " + m.moment +
                                      " moment. There is nothing that this period could apply to. Leave " + key +
                                      " out, or use an optimizer with a " + m.moment + " moment.");
  }
}

void describe_moment(const DeslocSchedule& schedule, const MomentPeriod& m, const Options& options, Log& log, bool has_moment) {
  const bool given = options.given(m.option);
  const std::string period = std::string("desloc.") + m.option + " " + period_text(m.period);
  if (!has_moment) {
    log.info("desloc: the optimizer keeps no " + std::string(m.moment) + " moment, so " + (given ? "" : "the default ") + period +
             " is ignored");
  } else if (m.period != never && m.period % schedule.kx != 0) {
    log.warning("desloc: " + period + " is not a multiple of desloc.kx " + period_text(schedule.kx) + ", so the " + m.moment +
                " moment is averaged at steps where parameters are not; multiples are recommended");
  }
}

MomentPeriod first_moment(const DeslocSchedule& schedule) {
  return {"ku", "first", schedule.ku, 3};
}
MomentPeriod second_moment(const DeslocSchedule& schedule) {
  return {"kv", "second", schedule.kv, 6};
}

}  // namespace

std::string period_text(int64_t period) {
  return period == never ? "inf" : std::to_string(period);
}

DeslocSchedule read_schedule(const Options& options) {
  const DeslocSchedule schedule{options.period("kx"), options.period("ku"), options.period("kv"), options.integer("warmup_steps")};
  if (schedule.warmup_steps < 0) {
    throw Error(ErrorKind::usage, "desloc.warmup_steps is " + std::to_string(schedule.warmup_steps) +
                                      ". It is the number of first steps in which everything is averaged every step. Set it to 0 or more.");
  }
  return schedule;
}

void check_schedule(const DeslocSchedule& schedule, const Options& options, bool has_moment1, bool has_moment2) {
  check_moment(schedule, first_moment(schedule), options, has_moment1);
  check_moment(schedule, second_moment(schedule), options, has_moment2);
}

void describe_schedule(const DeslocSchedule& schedule, const Options& options, Log& log, bool has_moment1, bool has_moment2) {
  describe_moment(schedule, first_moment(schedule), options, log, has_moment1);
  describe_moment(schedule, second_moment(schedule), options, log, has_moment2);
  if (!schedule.ever_due(schedule.kx)) log.warning("desloc: desloc.kx is inf, so replicas train apart and are never averaged");
}

}  // namespace nsp
