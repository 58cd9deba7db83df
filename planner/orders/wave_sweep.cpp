#include "planner/orders/wave_sweep.h"

#include <algorithm>
#include <cstdint>

namespace frazil {

WaveSweep::WaveSweep(const WavePipeline& pipeline) : pipeline_(pipeline) {
  const auto micro_batches = static_cast<std::size_t>(pipeline.micro_batches);
  devices_.resize(pipeline.lengths.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    devices_[d].span = pipeline.loads[d];
    devices_[d].parts.reserve(kWaveParts * micro_batches);
    longest_ = std::max(longest_, pipeline.loads[d]);
  }
  for (std::vector<Duration>& ends : ends_) ends.resize(devices_.size() * micro_batches);
}

bool WaveSweep::make(const WeightsFirst& weights_first, const std::vector<Duration>& spans_before,
                     Duration below) {
  if (!spans_before.empty()) allow_as_before(spans_before);
  fill();
  even_out();
  for (int round = 0; round < 2 * pipeline_.micro_batches; ++round) {
    run_inputs(weights_first.before_input_of_chunk1);
    run_forwards(weights_first.before_forward);
    if (is_stuck_ || longest_ >= below) return false;
  }
  for (int d = 0; d < pipeline_.devices(); ++d) {
    while (device(d).owes()) run_weight(d);
  }
  return true;
}

void WaveSweep::follow(const DeviceOrders& orders) {
  std::vector<std::size_t> next(orders.size(), 0);
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (int d = 0; d < pipeline_.devices(); ++d) {
      const DeviceOrder& order = orders[static_cast<std::size_t>(d)];
      for (std::size_t& at = next[static_cast<std::size_t>(d)]; at < order.size(); ++at) {
        const WavePart part = part_of(order[at]);
        if (is_leg(part) && arrival(part, d) == kFarAway) break;
        run(part, d);
        has_moved = true;
      }
    }
  }
}

WaveScore WaveSweep::score() const {
  WaveScore score{longest_, Duration{0}};
  for (const Device& own : devices_) score.makespan = std::max(score.makespan, own.free);
  return score;
}

std::vector<Duration> WaveSweep::spans() const {
  std::vector<Duration> spans;
  for (const Device& own : devices_) spans.push_back(own.span);
  return spans;
}

DeviceOrders WaveSweep::orders() const {
  DeviceOrders orders(devices_.size());
  for (int d = 0; d < pipeline_.devices(); ++d) {
    DeviceOrder& order = orders[static_cast<std::size_t>(d)];
    std::array<std::int32_t, kWaveParts> next{};
    order.reserve(device(d).parts.size());
    for (const WavePart part : device(d).parts) {
      order.push_back({.kind = kind_of(part),
                       .stage = stage_of(part, d, pipeline_.devices()),
                       .micro_batch = next[index_of(part)]++});
    }
  }
  return orders;
}

bool WaveSweep::has_left(WavePart part, int d) const {
  return device(d).count(part) < pipeline_.micro_batches;
}

Duration WaveSweep::length(WavePart part, int d) const {
  return pipeline_.lengths[static_cast<std::size_t>(d)][index_of(part)];
}

std::size_t WaveSweep::place(int d, int micro_batch) const {
  return static_cast<std::size_t>(d) * static_cast<std::size_t>(pipeline_.micro_batches) +
         static_cast<std::size_t>(micro_batch);
}

WavePart WaveSweep::part_of(const OrderedWork& work) const {
  const bool chunk0 = work.stage < pipeline_.devices();
  if (work.kind == ActionKind::kForward) return chunk0 ? kF0 : kF1;
  if (work.kind == ActionKind::kBackwardInput) return chunk0 ? kI0 : kI1;
  return chunk0 ? kW0 : kW1;
}

// Returns the device from which the input of a leg comes; `d` itself where the way turns or begins.
int WaveSweep::input_from(WavePart leg, int d) const {
  const int from = leg == kF0 || leg == kI1 ? d - 1 : d + 1;
  return from < 0 || from == pipeline_.devices() ? d : from;
}

// Returns when the input of the next micro-batch of a leg has arrived; kFarAway if that is not
// known, or if none is left.
Duration WaveSweep::arrival(WavePart leg, int d) const {
  if (!has_left(leg, d)) return kFarAway;
  const int from = input_from(leg, d);
  if (from == d && leg == kF0) return Duration{0};
  const auto before = from == d ? static_cast<WavePart>(index_of(leg) - 1) : leg;
  const int next = device(d).count(leg);
  if (device(from).count(before) <= next) return kFarAway;
  return ends_[index_of(before)][place(from, next)] + (from == d ? Duration{0} : pipeline_.hop);
}

// Returns how long a device may idle now without being the one whose span is longest.
Duration WaveSweep::may_idle(int d) const {
  const Duration allowed =
      allowed_.empty() ? longest_ : std::max(longest_, allowed_[static_cast<std::size_t>(d)]);
  return allowed - device(d).span;
}

// True if the device has fewer F than the one before, or no more of chunk 1 while more are left.
bool WaveSweep::is_behind(int d) const {
  const Device& own = device(d);
  const Device& before = device(d - 1);
  return own.forwards() < before.forwards() ||
         (own.count(kF1) <= before.count(kF1) && has_left(kF1, d - 1));
}

// True if the next I of a device is one of chunk 0.
bool WaveSweep::comes_back(int d) const {
  if (device(d).count(kI0) >= device(d).count(kI1)) return false;
  return !has_left(kI1, d) || arrival(kI0, d) != kFarAway;
}

void WaveSweep::allow_as_before(const std::vector<Duration>& spans) {
  const Duration longest = *std::max_element(spans.begin(), spans.end());
  for (std::size_t d = 0; d < spans.size(); ++d) {
    allowed_.push_back(pipeline_.loads[d] + longest - spans[d]);
  }
}

void WaveSweep::fill() {
  const int last = pipeline_.devices() - 1;
  for (int d = 0; d <= last; ++d) run(kF0, d);
  for (int d = last; d >= 0; --d) {
    const Duration back = arrival(kF1, d);
    // This device and each one before it still need room for two F.
    while (d < last && device(d).held + 2 * (d + 1) <= pipeline_.most_held() &&
           device(d).free + length(kF0, d) <= back && has_left(kF0, d)) {
      for (int before = 0; before <= d; ++before) run(kF0, before);
    }
    run(kF1, d);
  }
}

void WaveSweep::even_out() {
  WavePart turn = kF0;
  for (int d = 1; d < pipeline_.devices(); ++d) {
    while (is_behind(d) && !is_stuck_) {
      for (int behind = pipeline_.devices() - 1; behind >= d; --behind) {
        if (has_left(turn, behind)) run(turn, behind);
      }
      turn = turn == kF0 ? kF1 : kF0;
    }
  }
}

void WaveSweep::run_inputs(bool weights_first) {
  std::vector<bool> of_chunk0;
  for (int d = 0; d < pipeline_.devices(); ++d) of_chunk0.push_back(comes_back(d));
  for (int d = pipeline_.devices() - 1; d >= 0; --d) {
    if (of_chunk0[static_cast<std::size_t>(d)]) run_leg(kI0, d, true);
  }
  for (int d = 0; d < pipeline_.devices(); ++d) {
    if (!of_chunk0[static_cast<std::size_t>(d)]) run_leg(kI1, d, weights_first);
  }
}

void WaveSweep::run_forwards(bool weights_first) {
  for (int d = 0; d < pipeline_.devices(); ++d) {
    const WavePart leg = arrival(kF1, d) != kFarAway ? kF1 : kF0;
    if (arrival(leg, d) == kFarAway) continue;
    while (device(d).held == pipeline_.most_held() && device(d).owes()) run_weight(d);
    run_leg(leg, d, weights_first);
  }
}

// Runs a leg. Before it come the W that end before its input arrives, and one more if
// `weights_first` and the device may not idle that long. Where the way turns, the input is there.
void WaveSweep::run_leg(WavePart leg, int d, bool weights_first) {
  const Device& own = device(d);
  const Duration ready = arrival(leg, d);
  if (input_from(leg, d) != d && ready != kFarAway) {
    while (own.owes() && own.free + length(own.owed[own.weights], d) <= ready) run_weight(d);
    if (weights_first && own.owes() && ready - own.free > may_idle(d)) run_weight(d);
  }
  run(leg, d);
}

void WaveSweep::run_weight(int d) {
  Device& own = device(d);
  run(own.owed[own.weights++], d);
}

void WaveSweep::run(WavePart part, int d) {
  Device& own = device(d);
  const Duration ready = is_leg(part) ? arrival(part, d) : own.free;
  const bool is_forward = part == kF0 || part == kF1;
  if (ready == kFarAway || (is_forward && own.held == pipeline_.most_held())) {
    is_stuck_ = true;
    return;
  }
  if (!own.parts.empty() && ready > own.free) {
    own.span += ready - own.free;
    longest_ = std::max(longest_, own.span);
  }
  own.free = std::max(own.free, ready) + length(part, d);
  own.parts.push_back(part);
  if (is_leg(part)) ends_[index_of(part)][place(d, own.count(part))] = own.free;
  if (is_forward) ++own.held;
  if (part == kI1) own.owed.push_back(kW1);
  if (part == kI0) own.owed.push_back(kW0);
  if (is_weight(part)) --own.held;
  ++own.done[index_of(part)];
}

}  // namespace frazil
