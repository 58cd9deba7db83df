#include "exec/devices/tick_count.h"

#include <algorithm>
#include <ctime>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr Duration kLongestTick = std::chrono::milliseconds(100);
constexpr int kTenths = 10;
// A process is at work if its threads have used this fraction (1 / kBusyFraction) of one core.
constexpr int kBusyFraction = 10;

Duration processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Duration{time.tv_nsec};
}

}  // namespace

TickCount::TickCount(Duration limit, Busy busy)
    : limit_(limit),
      tick_(std::clamp(limit / kTenths, Duration{1}, kLongestTick)),
      busy_(busy),
      looked_(std::chrono::steady_clock::now()) {
  ENSURE(limit > Duration{0} && limit <= kLongest, "a deadline is some time ahead");
  if (busy_ == Busy::kSpared) used_ = processor_time();
}

bool TickCount::is_over() {
  const SteadyTime now = std::chrono::steady_clock::now();
  const Duration passed = now - looked_;
  looked_ = now;
  int weight = kTenths;
  if (busy_ == Busy::kSpared) {
    const Duration used = processor_time();
    if ((used - used_) * kBusyFraction >= passed) weight = 1;
    used_ = used;
  }
  tenths_ += std::min(passed, 2 * tick_).count() * weight;
  return tenths_ >= limit_.count() * kTenths;
}

void TickCount::restart() { tenths_ = 0; }

}  // namespace frazil
