#include "exec/run/step_deadline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "exec/devices/tick_count.h"

namespace frazil {
namespace {

constexpr int kTimes = 5;
constexpr int kFirstSteps = 3;
constexpr Duration kLookEvery = std::chrono::seconds(1);
constexpr Duration kLongestStep = TickCount::kLongest / kTimes;

}  // namespace

double slow_down(int cores, double foreign) {
  const double all = std::max(cores, 1);
  return all / std::max(all - foreign, all / 8);
}

void StepDeadline::begin_plan(Duration predicted_step) {
  predicted_ = predicted_step;
  longest_ = kNoTime;
  recorded_ = 0;
}

void StepDeadline::record(Duration step) {
  if (recorded_ < kFirstSteps) {
    longest_ = std::max(longest_, step);
    ++recorded_;
  }
  if (since(looked_) < kLookEvery) return;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  slowdown_ = slow_down(cores, load_.cores().value_or(0));
  load_ = ForeignLoad();
  looked_ = std::chrono::steady_clock::now();
}

Duration StepDeadline::time() const {
  if (predicted_ == kNoTime && recorded_ == 0) return kUnknown;
  const double predicted = static_cast<double>(predicted_.count()) * slowdown_;
  const double most = static_cast<double>(kLongestStep.count());
  const Duration slowed{std::llround(std::min(predicted, most))};
  return std::max(kLeast, kTimes * std::min(std::max(slowed, longest_), kLongestStep));
}

}  // namespace frazil
