#include "planner/freezing/decorators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

Step steps_of(const Length& length) {
  ENSURE(length.unit == PaceUnit::kSteps && length.count >= 0, "a length in steps");
  return length.count;
}

bool thaws_any(const FreezeMask& from, const FreezeMask& to) {
  for (int block = 0; block < from.blocks(); ++block) {
    if (from.is_frozen(BlockId{block}) && to.is_active(BlockId{block})) return true;
  }
  return false;
}

// Returns by how much the reading is worse than `before`; negative where it is better.
double shortfall(const ValidationGuard& guard, double before, double reading) {
  switch (guard.metric) {
    case ValidationGuard::Metric::kAccuracy:
      return before - reading;
    case ValidationGuard::Metric::kLoss:
      return reading - before;
  }
  ENSURE(false, "a known metric");
}

// Returns what the next reading is measured by; none before the first.
std::optional<double> better_before(const ValidationGuard& guard,
                                    const ValidationGuardState& state) {
  if (!state.mean || !state.last) return state.mean;
  return shortfall(guard, *state.mean, *state.last) > 0 ? state.mean : state.last;
}

// Returns the squared standard error of an accuracy.
double square_error(double accuracy, double samples) {
  const double share = (std::clamp(accuracy, 0.0, 1.0) * samples + 1) / (samples + 2);
  return share * (1 - share) / samples;
}

double noise_of(const ValidationGuard& guard, const ValidationGuardState& state,
                const Validation& validation) {
  const std::optional<double> before = better_before(guard, state);
  if (guard.metric == ValidationGuard::Metric::kLoss || validation.samples == 0 || !before) {
    return std::sqrt(state.variance);
  }
  const auto samples = static_cast<double>(validation.samples);
  return std::sqrt(square_error(validation.accuracy, samples) + square_error(*before, samples));
}

double reading_of(const ValidationGuard& guard, const Validation& validation) {
  switch (guard.metric) {
    case ValidationGuard::Metric::kAccuracy:
      return validation.accuracy;
    case ValidationGuard::Metric::kLoss:
      return validation.loss;
  }
  ENSURE(false, "a known metric");
}

void add_reading(const ValidationGuard& guard, double reading, ValidationGuardState& state) {
  const double mean = state.mean.value_or(reading);
  const double distance = reading - mean;
  state.mean = mean + guard.smoothing * distance;
  state.last = reading;
  state.variance = (1 - guard.smoothing) * (state.variance + guard.smoothing * distance * distance);
}

// Grants the wanted thaws, but lets no block freeze.
Ruling wait(const Wish& wish) {
  FreezeMask mask = wish.wanted;
  for (int block = 0; block < mask.blocks(); ++block) {
    if (wish.held.is_active(BlockId{block})) mask.set_active(BlockId{block}, true);
  }
  if (mask == wish.wanted) return {std::move(mask), ""};
  return {std::move(mask), "No block freezes while the validation improves."};
}

}  // namespace

Length in_steps(Length length, Step steps_per_epoch) {
  if (length.unit == PaceUnit::kSteps) return length;
  ENSURE(length.count >= 0 && length.count <= 1'000'000'000 && steps_per_epoch >= 1 &&
             steps_per_epoch <= Step{1} << 32,
         "epochs that can be counted in steps");
  return {length.count * steps_per_epoch, PaceUnit::kSteps};
}

Ruling rule(const Hysteresis& hysteresis, HysteresisState& state, const Wish& wish) {
  const bool is_first = state.since.empty();
  state.since.resize(static_cast<std::size_t>(wish.held.blocks()), wish.step);
  FreezeMask mask = wish.held;
  int delayed = 0;
  for (int block = 0; block < mask.blocks(); ++block) {
    const BlockId id{block};
    Step& since = state.since[id.index()];
    if (!is_first && state.wanted.is_active(id) != wish.wanted.is_active(id)) since = wish.step;
    if (wish.wanted.is_active(id) == mask.is_active(id)) continue;
    if (wish.step - since >= steps_of(hysteresis.length)) {
      mask.set_active(id, wish.wanted.is_active(id));
    } else {
      ++delayed;
    }
  }
  state.wanted = wish.wanted;
  if (delayed == 0) return {std::move(mask), ""};
  return {std::move(mask), fmt::format("{} blocks wait until their change has been wanted for {} "
                                       "steps.",
                                       delayed, steps_of(hysteresis.length))};
}

FreezeMask project_prefix(const FreezeMask& mask) {
  int frozen = 0;
  while (frozen < mask.blocks() && mask.is_frozen(BlockId{frozen})) ++frozen;
  return FreezeMask::frozen_prefix(mask.blocks(), BlockId{frozen - 1});
}

Ruling rule(const PrefixProjection&, const Wish& wish) {
  FreezeMask mask = project_prefix(wish.wanted);
  if (mask == wish.wanted) return {std::move(mask), ""};
  const int frozen = mask.frozen_count();
  return {std::move(mask),
          fmt::format("Only the first {} blocks are frozen without a gap.", frozen)};
}

Ruling rule(const ValidationGuard& guard, ValidationGuardState& state,
            const std::optional<Validation>& validation, const Wish& wish) {
  const FreezeMask all_active = FreezeMask::all_active(wish.held.blocks());
  if (validation && (!state.read || validation->step > *state.read)) {
    state.read = validation->step;
    const double reading = reading_of(guard, *validation);
    const bool is_number = std::abs(reading) <= kLargestReading;  // false for NaN
    const std::optional<double> before = better_before(guard, state);
    const double most = guard.sigmas * noise_of(guard, state, *validation) + guard.tolerance;
    const bool is_bad = !is_number || (before && shortfall(guard, *before, reading) > most);
    if (is_bad && wish.held.frozen_count() > 0) {
      state.hold = guard.hold_evaluations;
      ++state.thaws;
      return {all_active,
              fmt::format("All blocks thaw: {} {:.4g} is worse than {:.4g} before by more than "
                          "{:.4g}.",
                          guard.metric == ValidationGuard::Metric::kLoss ? "loss" : "accuracy",
                          reading, before.value_or(reading), most)};
    }
    if (is_number) {
      state.improves = !state.mean || -shortfall(guard, *state.mean, reading) > guard.tolerance;
      add_reading(guard, reading, state);
    }
    if (state.hold > 0) --state.hold;
  }
  if (state.hold == 0 && guard.waits && state.improves) return wait(wish);
  if (state.hold == 0 || wish.wanted == all_active) return {wish.wanted, ""};
  return {all_active, fmt::format("All blocks stay active for {} more evaluations.", state.hold)};
}

Ruling rule(const MinimumInterval& interval, std::optional<Step> changed, const Wish& wish) {
  const bool is_early = changed && wish.step - *changed < steps_of(interval.length);
  if (!is_early || wish.wanted == wish.held) return {wish.wanted, ""};
  return {wish.held, fmt::format("The mask changed at step {}, and {} steps are to lie between two "
                                 "changes.",
                                 *changed, steps_of(interval.length))};
}

Ruling rule(const AmortisationGate& gate, const PredictTransition& predict, Step steps,
            const Wish& wish) {
  if (wish.wanted == wish.held || thaws_any(wish.held, wish.wanted)) return {wish.wanted, ""};
  ENSURE(predict != nullptr, "an amortisation gate is given a prediction to ask");
  const PredictedTransition predicted = predict(wish.held, wish.wanted, wish.step);
  ENSURE(predicted.cost >= Duration{0}, "a transition costs no less than nothing");
  Step left = std::max<Step>(steps - wish.step, 0);
  if (gate.within) left = std::min(left, steps_of(*gate.within));
  __extension__ using Wide = __int128;
  const Wide gain = static_cast<Wide>(predicted.saved_per_step.count()) * left * 100;
  const Wide price = static_cast<Wide>(predicted.cost.count()) * gate.margin_percent;
  if (predicted.saved_per_step > Duration{0} && gain >= price) return {wish.wanted, ""};
  if (predicted.saved_per_step <= Duration{0}) {
    return {wish.held, "The transition would not make a step shorter."};
  }
  return {
      wish.held,
      fmt::format("The transition would cost {} and save {} a step, which {} steps do not earn.",
                  to_text(predicted.cost), to_text(predicted.saved_per_step), left)};
}

}  // namespace frazil
