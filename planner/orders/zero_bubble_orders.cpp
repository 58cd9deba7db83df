#include "planner/orders/zero_bubble_orders.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "planner/orders/endless_times.h"
#include "planner/orders/linear_orders.h"
#include "planner/orders/wake_times.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using Time = std::int64_t;

enum Kind : std::size_t { kForward, kInput, kWeight };
constexpr std::array kActions{ActionKind::kForward, ActionKind::kBackwardInput,
                              ActionKind::kBackwardWeight};

struct Stage {
  std::array<Time, 3> length{};  // by kind
  Time head = 0;                 // when its first F can start, and does
  Time round_trip = 0;           // least time from the end of F to the start of I

  Time total() const { return length[kForward] + length[kInput] + length[kWeight]; }
};

struct Pipeline {
  std::vector<Stage> stages;
  int micro_batches = 1;
  int in_flight = 1;
  int halves_at_input = 0;  // halves of a micro-batch, 0 or 1, that are released at I
  Time hop = 0;
};

// The quality of an order: the longest device span counts first, then the makespan.
struct Score {
  Time span = kFarAway.count();
  Time makespan = kFarAway.count();
  friend auto operator<=>(const Score&, const Score&) = default;
};

Pipeline read_problem(const OrderProblem& problem, ActivationRelease release) {
  if (problem.chunks != 1) throw InfeasibleError("zb-1p and zb-2p have one chunk per device");
  if (problem.times.empty()) {
    throw InfeasibleError("zb-1p and zb-2p decide by cost and need the times of the stages");
  }
  ENSURE(problem.times.size() == static_cast<std::size_t>(problem.devices), "times of every stage");
  ENSURE(problem.in_flight && *problem.in_flight >= 1, "a device that holds a micro-batch");
  const int halves_at_input = release == ActivationRelease::kHalfAtInput ? 1 : 0;
  Pipeline pipeline{
      {}, problem.micro_batches, *problem.in_flight, halves_at_input, problem.hop.count()};
  Time head = 0;
  for (const auto& [forward, input, weight] : problem.times) {
    pipeline.stages.push_back({{forward.count(), input.count(), weight.count()}, head, 0});
    head += forward.count() + pipeline.hop;
  }
  for (std::size_t s = pipeline.stages.size() - 1; s-- > 0;) {
    const Stage& after = pipeline.stages[s + 1];
    pipeline.stages[s].round_trip =
        after.round_trip + after.length[kForward] + after.length[kInput] + 2 * pipeline.hop;
  }
  return pipeline;
}

// Returns lower bounds that hold for any order. With n = min(K, m), a stage has
// clang-format off
//   before its first I  only n - 1 more F that fit into the round trip; it idles for the rest: warm
//   after its last F    only the work that it then holds to fill the round trip: cool. If m > K,
//                       the last F comes after the first I, so that the stage idles for both
//   before its last I   all F, all I, the W without which the last F would not fit, and warm; then
//                       come the I of each stage before it in turn, and the W of any of these
//                       stages
// clang-format on
// For equal stages and K = p the first two prove the times of ZB-H1 (Qi et al. 2024) optimal.
Score find_bounds(const Pipeline& pipeline) {
  const Time m = pipeline.micro_batches;
  const Time in_flight = pipeline.in_flight;
  const bool halves = pipeline.halves_at_input == 1;
  const Time more = std::min(in_flight, m) - 1;
  const Time weights_first = std::max<Time>(0, m - (halves ? 2 * in_flight - 1 : in_flight));
  Score bounds{0, 0};
  Time last_input = 0;  // end
  for (auto stage = pipeline.stages.rbegin(); stage != pipeline.stages.rend(); ++stage) {
    const auto [forward, input, weight] = stage->length;
    const Time drain = weight + (halves ? std::max(input, weight) : input);
    const Time warm = std::max<Time>(0, stage->round_trip - more * forward);
    const Time cool = std::max<Time>(0, stage->round_trip - more * drain);
    const Time idle = m > in_flight ? warm + cool : std::max(warm, cool);
    last_input = std::max(last_input + pipeline.hop + input,
                          stage->head + warm + m * (forward + input) + weights_first * weight);
    const Time end = std::max(stage->head + m * stage->total() + idle, last_input + weight);
    bounds.span = std::max(bounds.span, end - stage->head);
    bounds.makespan = std::max(bounds.makespan, end);
  }
  return bounds;
}

// How a device decides by cost: it runs I if it can, else F, else W. An F goes before an I while
// fewer than `forward_first_quarters` of the depth are in flight, and an F waits for an I that
// comes within `wait_quarters` of the F's length. A W that delays the next work runs if the gap
// that it fills is at least `gap_quarters` of the W's length. A wait that would put the bound on
// the span out of reach is not made.
struct Habit {
  int forward_first_quarters = 0;
  int wait_quarters = 0;
  int gap_quarters = 0;
};

// One way to make an order. The depth of a stage is the number of micro-batches in flight, after F
// and before I, from which on the stage starts no more F. In a closed form so many F come first,
// then I and F in turn, each waited for, and W as far behind I as K allows.
struct Variant {
  bool closed_form = true;
  int in_flight = 1;           // K at most
  int round_trips_tenths = 0;  // depth in round trips of a steady state; 0: falls evenly to 1
  Habit habit;
};

// Lists the variants. Their depths and habits together came nearest the bounds on random pipelines.
std::vector<Variant> list_variants(int in_flight) {
  constexpr std::array kTenths{23, 30, 0};
  constexpr std::array kHabits{Habit{4, 0, 3}, Habit{2, 1, 4}, Habit{2, 0, 2}, Habit{2, 4, 3}};
  std::vector<Variant> variants{{true, in_flight, 0, {}},
                                {true, std::max(1, in_flight - 1), 0, {}}};
  for (const Habit& habit : kHabits) {
    for (const int tenths : kTenths) variants.push_back({false, in_flight, tenths, habit});
  }
  return variants;
}

// The state of a device. Micro-batches of a kind run in order, so three counts tell what is done.
struct Device {
  std::array<int, 3> done{};  // by kind
  int depth = 1;
  Time free = 0;
  Time work_left = 0;

  int flying() const { return done[kForward] - done[kInput]; }
};

class Sweep {
 public:
  Sweep(const Pipeline& pipeline, const Variant& variant, Time span_bound)
      : pipeline_(pipeline),
        variant_(variant),
        span_bound_(span_bound),
        micro_batches_(static_cast<std::size_t>(pipeline.micro_batches)),
        devices_(pipeline.stages.size()),
        wakes_(pipeline.stages.size(), kFarAway.count()),
        kinds_(pipeline.stages.size()) {
    for (std::vector<Time>& ends : ends_) ends.resize(micro_batches_ * devices_.size());
    Time longest = 1;
    for (const Stage& stage : pipeline.stages) longest = std::max(longest, stage.total());
    for (std::size_t s = 0; s < devices_.size(); ++s) {
      devices_[s].depth = find_depth(s, longest);
      devices_[s].work_left = pipeline.micro_batches * stage(s).total();
    }
    wakes_.set(0, 0);
  }

  // Makes the order and returns its score. Stops, with the worst score, as soon as the span or the
  // makespan must be longer than `longest`.
  Score run(const Score& longest) {
    for (std::size_t left = 3 * micro_batches_ * devices_.size(); left > 0;) {
      const std::size_t s = find_next_device();
      const std::optional<Kind> kind = variant_.closed_form ? choose_in_turn(s) : choose_by_cost(s);
      if (!kind) continue;
      perform(*kind, s);
      --left;
      const Time earliest_end = devices_[s].free + devices_[s].work_left;
      const bool too_long = earliest_end - stage(s).head > longest.span;
      if (too_long || earliest_end > longest.makespan) return {};
    }
    Score score{0, 0};
    for (std::size_t s = 0; s < devices_.size(); ++s) {
      score.span = std::max(score.span, devices_[s].free - stage(s).head);
      score.makespan = std::max(score.makespan, devices_[s].free);
    }
    return score;
  }

  DeviceOrders orders() const {
    DeviceOrders orders(devices_.size());
    for (std::size_t s = 0; s < devices_.size(); ++s) {
      std::array<int, 3> done{};
      for (const Kind kind : kinds_[s]) {
        orders[s].push_back({kActions[kind], false, 0, static_cast<std::int32_t>(s), done[kind]++});
      }
    }
    return orders;
  }

 private:
  const Stage& stage(std::size_t s) const { return pipeline_.stages[s]; }
  Time& end(Kind kind, std::size_t s, int micro_batch) {
    return ends_[kind][micro_batches_ * s + static_cast<std::size_t>(micro_batch)];
  }

  int find_depth(std::size_t s, Time longest_stage) const {
    const int devices = static_cast<int>(devices_.size());
    const int tenths = variant_.round_trips_tenths;
    if (tenths == 0) return warm_up(variant_.in_flight, devices, static_cast<int>(s));
    const Time period = 10 * longest_stage;
    const Time hidden = divide_up(stage(s).round_trip * tenths, period);
    return static_cast<int>(std::min<Time>(variant_.in_flight, 1 + hidden));
  }

  // Returns the last of the devices that decide first, which knows what the device after it has
  // just started.
  std::size_t find_next_device() const {
    ENSURE(wakes_.earliest() != kFarAway.count(), "every device waits for another");
    return wakes_.next();
  }

  // Returns when the inputs of the next F or I have arrived; kFarAway if that is not known.
  Time arrival(Kind kind, std::size_t s) {
    const int next = devices_[s].done[kind];
    if (kind == kForward && s == 0) return next < pipeline_.micro_batches ? 0 : kFarAway.count();
    if (kind == kInput && s + 1 == devices_.size()) {
      return next < devices_[s].done[kForward] ? end(kForward, s, next) : kFarAway.count();
    }
    const std::size_t from = kind == kForward ? s - 1 : s + 1;
    return next < devices_[from].done[kind] ? end(kind, from, next) + pipeline_.hop
                                            : kFarAway.count();
  }

  std::optional<Kind> choose_in_turn(std::size_t s) {
    Device& device = devices_[s];
    const int inputs = device.done[kInput];
    const int lag = variant_.in_flight - device.depth;
    if (inputs == pipeline_.micro_batches || device.done[kWeight] < inputs - lag) return kWeight;
    const bool filled =
        device.flying() == device.depth || device.done[kForward] == pipeline_.micro_batches;
    const Kind next = filled ? kInput : kForward;
    const Time ready = arrival(next, s);
    return ready <= wakes_.of(s) ? std::optional(next) : wait(s, ready);
  }

  std::optional<Kind> choose_by_cost(std::size_t s) {
    const Habit& habit = variant_.habit;
    Device& device = devices_[s];
    const Time now = wakes_.of(s);
    const Time slack = stage(s).head + span_bound_ - now - device.work_left;
    const int at_input = pipeline_.halves_at_input;
    const int halves = 2 * device.done[kForward] - at_input * device.done[kInput] -
                       (2 - at_input) * device.done[kWeight];
    const bool fits = halves + 2 <= 2 * pipeline_.in_flight;
    const Time to_input = arrival(kInput, s) - now;
    const Time to_forward =
        (device.flying() < device.depth ? arrival(kForward, s) : kFarAway.count()) - now;
    if (to_forward <= 0 && fits) {
      if (4 * device.flying() < habit.forward_first_quarters * device.depth) return kForward;
      if (to_input <= 0) return kInput;
      const bool soon = 4 * to_input < habit.wait_quarters * stage(s).length[kForward];
      return soon && to_input <= slack ? wait(s, now + to_input) : kForward;
    }
    if (to_input <= 0) return kInput;
    const Time gap = fits ? std::min(to_input, to_forward) : to_input;
    const Time weight = stage(s).length[kWeight];
    const bool makes_room = to_forward <= 0;
    const bool worth = gap >= weight || 4 * gap >= habit.gap_quarters * weight || gap > slack;
    if (device.done[kWeight] < device.done[kInput] && (makes_room || worth)) return kWeight;
    return wait(s, now + gap);
  }

  std::optional<Kind> wait(std::size_t s, Time until) {
    wakes_.set(s, until);
    return std::nullopt;
  }

  void perform(Kind kind, std::size_t s) {
    Device& device = devices_[s];
    const Time length = stage(s).length[kind];
    const Time start = kind == kWeight ? device.free : std::max(device.free, arrival(kind, s));
    kinds_[s].push_back(kind);
    device.free = start + length;
    device.work_left -= length;
    if (kind != kWeight) {
      end(kind, s, device.done[kind]) = device.free;
      const std::size_t to = kind == kForward ? s + 1 : s - 1;
      if (to < devices_.size()) {
        const Time decides = std::max(devices_[to].free, device.free + pipeline_.hop);
        if (decides < wakes_.of(to)) wakes_.set(to, decides);
      }
    }
    ++device.done[kind];
    wakes_.set(s, device.done[kWeight] < pipeline_.micro_batches ? device.free : kFarAway.count());
  }

  const Pipeline& pipeline_;
  const Variant& variant_;
  Time span_bound_;
  std::size_t micro_batches_;
  std::vector<Device> devices_;
  WakeTimes wakes_;                        // when each decides again
  std::array<std::vector<Time>, 2> ends_;  // of F and I, by stage, then micro-batch
  std::vector<std::vector<Kind>> kinds_;   // by stage, in order
};

}  // namespace

DeviceOrders make_zero_bubble_order(const OrderProblem& problem, ActivationRelease release) {
  const Pipeline pipeline = read_problem(problem, release);
  refuse_endless_times(problem);
  const Score bounds = find_bounds(pipeline);
  Score best;
  DeviceOrders orders;
  for (const Variant& variant : list_variants(pipeline.in_flight)) {
    Sweep sweep(pipeline, variant, bounds.span);
    // Once the span is at its bound, only a shorter makespan can be better.
    const Score score =
        sweep.run({best.span, best.span == bounds.span ? best.makespan : kFarAway.count()});
    if (score >= best) continue;
    best = score;
    orders = sweep.orders();
    if (best == bounds) break;
  }
  return orders;
}

}  // namespace frazil
