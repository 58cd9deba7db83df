#include "planner/freezing/freeze_authority.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/freezing/freeze_schedule.h"
#include "profiles/error.h"

namespace frazil {
namespace {

FreezeConfig in_steps(FreezeConfig config, Step steps_per_epoch) {
  config.policy = in_steps(std::move(config.policy), steps_per_epoch);
  Decorators& around = config.decorators;
  if (around.hysteresis) {
    around.hysteresis->length = in_steps(around.hysteresis->length, steps_per_epoch);
  }
  if (around.minimum_interval) {
    around.minimum_interval->length = in_steps(around.minimum_interval->length, steps_per_epoch);
  }
  if (around.amortisation && around.amortisation->within) {
    around.amortisation->within = in_steps(*around.amortisation->within, steps_per_epoch);
  }
  return config;
}

std::vector<Signal> signals_of(const FreezePolicy& policy) {
  if (std::holds_alternative<PaperFreeze>(policy)) return {Signal::kGradientNorms};
  if (std::holds_alternative<AutoFreeze>(policy)) return {Signal::kIntervalGradients};
  if (const auto* plasticity = std::get_if<PlasticityFreeze>(&policy)) {
    if (plasticity->per_rate || plasticity->thaw_at_rate > 0) {
      return {Signal::kPlasticity, Signal::kLearningRate};
    }
    return {Signal::kPlasticity};
  }
  return {};
}

}  // namespace

std::string_view name_of(Signal signal) {
  switch (signal) {
    case Signal::kGradientNorms:
      return "gradient_norms";
    case Signal::kIntervalGradients:
      return "interval_gradients";
    case Signal::kPlasticity:
      return "plasticity";
    case Signal::kLearningRate:
      return "learning_rate";
    case Signal::kValidation:
      return "validation";
  }
  ENSURE(false, "a known signal");
}

std::vector<Signal> needed_signals(const FreezeConfig& config) {
  std::vector<Signal> needed = signals_of(config.policy);
  if (config.decorators.guard) needed.push_back(Signal::kValidation);
  return needed;
}

bool needs_prediction(const FreezeConfig& config) {
  return config.decorators.amortisation.has_value();
}

FreezeState initial_state(const FreezeConfig& config) {
  FreezeState state;
  state.policy = initial_state(config.policy);
  return state;
}

FreezeAuthority::FreezeAuthority(const FreezeConfig& config, const RunShape& run,
                                 PredictTransition predict, FindRoom has_room)
    : FreezeAuthority(config, run, initial_state(config), std::move(predict), std::move(has_room)) {
}

FreezeAuthority::FreezeAuthority(const FreezeConfig& config, const RunShape& run, FreezeState state,
                                 PredictTransition predict, FindRoom has_room)
    : config_(in_steps(config, run.steps_per_epoch)),
      run_(run),
      predict_(std::move(predict)),
      has_room_(std::move(has_room)),
      state_(std::move(state)) {
  ENSURE(run_.blocks >= 1 && run_.steps >= 1, "a run of a model");
  ENSURE(!needs_prediction(config_) || predict_, "an amortisation gate is given a prediction");
  ENSURE(is_state_of(config_.policy, state_.policy, run_.blocks), "a state of this configuration");
  ENSURE(!state_.step || state_.mask.blocks() == run_.blocks, "a state of this model");
}

std::vector<Signal> FreezeAuthority::needed_signals(Step step) const {
  std::vector<Signal> needed;
  if (is_due(config_.policy, state_.policy, step)) needed = signals_of(config_.policy);
  if (config_.decorators.guard) needed.push_back(Signal::kValidation);
  return needed;
}

Decision FreezeAuthority::decide(const FreezeSignals& signals) {
  ENSURE(signals.step >= 0 && (!state_.step || signals.step >= *state_.step),
         "decisions go forward in time");
  if (state_.step == signals.step) {
    return {state_.mask, false, std::string(name_of(config_.policy)),
            fmt::format("Step {} is decided already.", signals.step)};
  }
  const bool is_first = !state_.step;
  const FreezeMask held = is_first ? FreezeMask::all_active(run_.blocks) : state_.mask;
  Judged judged = want(config_.policy, state_.policy, signals, held, run_);
  state_.policy = std::move(judged.state);
  Decision decision{std::move(judged.wanted.mask), false, std::string(name_of(config_.policy)),
                    std::move(judged.wanted.reason)};
  apply_decorators(signals, held, decision);
  if (!is_first && decision.mask != held && has_room_ && !has_room_(decision.mask)) {
    decision.by = kNoRoom;
    decision.reason =
        fmt::format("Mask {} stays: no plan has room for {}.", held.text(), decision.mask.text());
    decision.mask = held;
  }
  decision.changed = is_first || decision.mask != held;
  if (!is_first && decision.changed) state_.changed = signals.step;
  state_.step = signals.step;
  state_.mask = decision.mask;
  return decision;
}

std::optional<FreezeMask> FreezeAuthority::foresee(Step within) const {
  if (!state_.step) return std::nullopt;
  if (!signals_of(config_.policy).empty()) {
    const int frozen_layers = std::max(project_prefix(state_.mask).frozen_count() - 1, 0);
    if (frozen_layers >= run_.layers()) return std::nullopt;
    return freeze_layers(run_.blocks, frozen_layers + 1);
  }
  const Step end = std::min(*state_.step + 1 + within, run_.steps);
  for (Step step = *state_.step + 1; step < end; ++step) {
    FreezeMask mask = want_by_step(config_.policy, step, run_)->mask;
    if (config_.decorators.prefix) mask = project_prefix(mask);
    if (mask != state_.mask) return mask;
  }
  return std::nullopt;
}

void FreezeAuthority::apply_decorators(const FreezeSignals& signals, const FreezeMask& held,
                                       Decision& decision) {
  const Decorators& around = config_.decorators;
  const bool is_first = !state_.step;
  const auto apply = [&](const char* name, auto&& ask) {
    Ruling ruling = ask(Wish{decision.mask, held, signals.step});
    decision.mask = std::move(ruling.mask);
    if (ruling.reason.empty()) return;
    decision.by = name;
    decision.reason = std::move(ruling.reason);
  };
  if (around.hysteresis && !is_first) {
    apply("hysteresis",
          [&](const Wish& wish) { return rule(*around.hysteresis, state_.hysteresis, wish); });
  }
  if (around.prefix) apply("prefix", [&](const Wish& wish) { return rule(*around.prefix, wish); });
  if (around.guard) {
    apply("validation_guard", [&](const Wish& wish) {
      return rule(*around.guard, state_.guard, signals.validation, wish);
    });
  }
  if (around.minimum_interval && !is_first) {
    apply("minimum_interval",
          [&](const Wish& wish) { return rule(*around.minimum_interval, state_.changed, wish); });
  }
  if (around.amortisation && !is_first) {
    apply("amortisation",
          [&](const Wish& wish) { return rule(*around.amortisation, predict_, run_.steps, wish); });
  }
}

}  // namespace frazil
