#include "planner/orders/greedy_orders.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "planner/orders/wake_times.h"
#include "planner/plan/placement.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::array kByPriority{ActionKind::kBackward, ActionKind::kRecompute,
                                 ActionKind::kForward};

struct Rules {
  Placement placement = Placement::kLinear;
  bool recompute = false;
  std::vector<StageTimes> times;
  Duration hop{0};
};

// The work that a stage has done. Its micro-batches run in order, so a count per kind is enough.
struct StageState {
  int device = 0;
  int recomputes = 0;
  std::array<Duration, kByPriority.size()> ready{};  // by priority
  std::vector<Duration> forward_end;
  std::vector<Duration> backward_end;
};

struct DeviceState {
  Duration free{0};
  std::vector<int> stages;  // by depth
};

class ListScheduler {
 public:
  ListScheduler(const OrderProblem& problem, const Rules& rules)
      : rules_(rules),
        micro_batches_(problem.micro_batches),
        stages_(static_cast<std::size_t>(problem.stages())),
        devices_(static_cast<std::size_t>(problem.devices)),
        next_starts_(devices_.size(), kNever.count()) {
    for (int s = 0; s < problem.stages(); ++s) {
      stage(s).device = device_of_stage(rules.placement, problem.devices, 0, s);
      devices_[static_cast<std::size_t>(stage(s).device)].stages.push_back(s);
    }
  }

  // Chooses the work that starts earliest on any device, so that all work that a device could do at
  // that time is known.
  DeviceOrders run() {
    DeviceOrders orders(devices_.size());
    for (int s = 0; s <= last_stage(); ++s) find_ready(s);
    for (std::size_t d = 0; d < devices_.size(); ++d) find_next_start(d);
    while (next_starts_.earliest() != kNever.count()) {
      const std::size_t next = place(next_starts_.next());
      const Duration start{next_starts_.earliest()};
      const OrderedWork work = choose(devices_[next], start);
      perform(work, devices_[next], start);
      orders[next].push_back(work);
      const int first = std::max(0, work.stage - 1);
      const int last = std::min(last_stage(), work.stage + 1);
      for (int s = first; s <= last; ++s) find_ready(s);
      for (int s = first; s <= last; ++s) {
        find_next_start(static_cast<std::size_t>(stage(s).device));
      }
    }
    return orders;
  }

 private:
  StageState& stage(int s) { return stages_[static_cast<std::size_t>(s)]; }
  const StageState& stage(int s) const { return stages_[static_cast<std::size_t>(s)]; }
  int last_stage() const { return static_cast<int>(stages_.size()) - 1; }

  int done(ActionKind kind, int s) const {
    if (kind == ActionKind::kRecompute) return stage(s).recomputes;
    const bool forward = kind == ActionKind::kForward;
    return static_cast<int>((forward ? stage(s).forward_end : stage(s).backward_end).size());
  }

  Duration arrival(const std::vector<Duration>& ends, int micro_batch, int from, int to) const {
    if (static_cast<std::size_t>(micro_batch) >= ends.size()) return kNever;
    const bool same_device = stage(from).device == stage(to).device;
    return ends[static_cast<std::size_t>(micro_batch)] + (same_device ? Duration{0} : rules_.hop);
  }

  // Returns when the inputs of the stage's next work of a kind have arrived; kNever if that is not
  // known.
  Duration ready(ActionKind kind, int s) const {
    const int next = done(kind, s);
    if (next == micro_batches_) return kNever;
    if (kind == ActionKind::kForward) {
      return s == 0 ? Duration{0} : arrival(stage(s - 1).forward_end, next, s - 1, s);
    }
    const bool recomputed = rules_.recompute && s != last_stage();
    if (kind == ActionKind::kRecompute && !recomputed) return kNever;
    if (kind == ActionKind::kBackward && recomputed) {
      return next < stage(s).recomputes ? Duration{0} : kNever;
    }
    if (s == last_stage()) return arrival(stage(s).forward_end, next, s, s);
    return arrival(stage(s + 1).backward_end, next, s + 1, s);
  }

  void find_ready(int s) {
    for (std::size_t k = 0; k < kByPriority.size(); ++k) {
      stage(s).ready[k] = ready(kByPriority[k], s);
    }
  }

  // Reverses the devices: WakeTimes prefers the last of those that start together, and here the
  // first one is next.
  std::size_t place(std::size_t device) const { return devices_.size() - 1 - device; }

  void find_next_start(std::size_t device) {
    Duration earliest = kNever;
    for (const int s : devices_[device].stages) {
      for (const Duration ready : stage(s).ready) earliest = std::min(earliest, ready);
    }
    next_starts_.set(place(device), std::max(devices_[device].free, earliest).count());
  }

  OrderedWork choose(const DeviceState& device, Duration start) const {
    for (std::size_t k = 0; k < kByPriority.size(); ++k) {
      const ActionKind kind = kByPriority[k];
      const bool deepest_first = kind == ActionKind::kForward;
      for (std::size_t i = 0; i < device.stages.size(); ++i) {
        const int s = device.stages[deepest_first ? device.stages.size() - 1 - i : i];
        if (stage(s).ready[k] <= start) return {kind, false, 0, s, done(kind, s)};
      }
    }
    ENSURE(false, "a device starts work that it does not have");
  }

  void perform(const OrderedWork& work, DeviceState& device, Duration start) {
    const StageTimes& times = rules_.times[static_cast<std::size_t>(work.stage)];
    const bool backward = work.kind == ActionKind::kBackward;
    device.free = start + (backward ? times.total() - times.forward : times.forward);
    if (work.kind == ActionKind::kForward) stage(work.stage).forward_end.push_back(device.free);
    if (work.kind == ActionKind::kRecompute) ++stage(work.stage).recomputes;
    if (backward) stage(work.stage).backward_end.push_back(device.free);
  }

  const Rules& rules_;
  int micro_batches_;
  std::vector<StageState> stages_;
  std::vector<DeviceState> devices_;
  // The start of the first work that each device can do, by place; kNever if none is known.
  WakeTimes next_starts_;
};

void refuse_in_flight(const OrderProblem& problem, const char* name) {
  if (!problem.in_flight) return;
  throw InfeasibleError(std::string(name) + " has no limit on micro-batches in flight");
}

}  // namespace

DeviceOrders make_hanayo_order(const OrderProblem& problem) {
  refuse_in_flight(problem, "hanayo");
  if (problem.chunks % 2 != 0) {
    throw InfeasibleError("hanayo needs an even number of chunks, two for each wave");
  }
  const auto stages = static_cast<std::size_t>(problem.stages());
  Rules rules{Placement::kWave, false, problem.times, problem.hop};
  if (rules.times.empty()) rules.times.assign(stages, {Duration{1}, Duration{1}, Duration{1}});
  ENSURE(rules.times.size() == stages, "times of every stage");
  return ListScheduler(problem, rules).run();
}

DeviceOrders make_varuna_order(const OrderProblem& problem) {
  refuse_in_flight(problem, "varuna");
  if (problem.chunks != 1) throw InfeasibleError("varuna has one chunk per device");
  Rules rules{Placement::kLinear, true, {}, Duration{0}};
  rules.times.assign(static_cast<std::size_t>(problem.stages()),
                     {Duration{1}, Duration{1}, Duration{0}});
  return ListScheduler(problem, rules).run();
}

}  // namespace frazil
