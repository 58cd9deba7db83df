#include "planner/freezing/measured_freeze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

// Counts the decisions due so far: T in the header.
template <class Paced>
Step intervals_over(const Paced& policy, Step step) {
  ENSURE(policy.unit == PaceUnit::kSteps, "a pace in steps");
  ENSURE(policy.interval >= 1, "a freeze interval is at least one step");
  return step < policy.start ? 0 : (step - policy.start) / policy.interval;
}

bool is_reading(double value) { return value >= 0 && value <= kLargestReading; }

// Lists those of the blocks first..L that were active while signals were measured.
std::vector<std::size_t> list_measured(int first, const FreezeMask& held, const RunShape& run) {
  std::vector<std::size_t> blocks;
  for (int block = first; block <= run.layers(); ++block) {
    if (held.is_active(BlockId{block})) blocks.push_back(static_cast<std::size_t>(block));
  }
  return blocks;
}

// Tells whether every listed block has a valid reading.
bool is_read(const std::vector<double>& values, const std::vector<std::size_t>& blocks,
             const RunShape& run) {
  if (blocks.empty()) return true;
  if (values.empty()) return false;
  ENSURE(values.size() == static_cast<std::size_t>(run.blocks), "a reading for every block");
  return std::all_of(blocks.begin(), blocks.end(),
                     [&](std::size_t block) { return is_reading(values[block]); });
}

int rounded_layers(double reached) { return static_cast<int>(std::ceil(reached - kRoundingNoise)); }

int frozen_layers(const PaperState& state) { return rounded_layers(state.reached); }
int frozen_layers(const AutoFreezeState& state) { return state.frozen; }
int frozen_layers(const PlasticityState& state) { return state.frozen; }

template <class State>
Judged answer(const State& state, const RunShape& run, std::string reason) {
  return {{freeze_layers(run.blocks, frozen_layers(state)), std::move(reason)}, state};
}

template <class State>
Judged keep(const State& state, const RunShape& run, const std::string& why) {
  return answer(
      state, run,
      fmt::format("{} of {} layers stay frozen: {}.", frozen_layers(state), run.layers(), why));
}

constexpr const char* kUnread = "a signal is missing, negative or not finite";

struct Judge {
  const FreezeSignals& signals;
  const FreezeMask& held;
  const RunShape& run;

  Judged operator()(const PaperFreeze& policy, PaperState state) const {
    const int frozen = frozen_layers(state);
    // While L_f = 0 the embedding has a gradient and takes part in the comparison.
    const std::vector<std::size_t> blocks = list_measured(frozen == 0 ? 0 : frozen + 1, held, run);
    if (!is_read(signals.gradient_norms, blocks, run)) return keep(state, run, kUnread);
    state.decided = intervals_over(policy, signals.step);
    if (blocks.empty() || run.layers() == 0) return keep(state, run, "no layer is left");
    const auto smallest =
        *std::min_element(blocks.begin(), blocks.end(), [&](std::size_t a, std::size_t b) {
          return signals.gradient_norms[a] < signals.gradient_norms[b];
        });
    const double bound = paper_bound(state.reached, policy.alpha, run.layers());
    state.reached = std::min(bound, static_cast<double>(smallest));
    return answer(state, run,
                  fmt::format("{} of {} layers are frozen: the bound is {:.3f}, the smallest "
                              "gradient norm that of block {}.",
                              frozen_layers(state), run.layers(), bound, smallest));
  }

  Judged operator()(const AutoFreeze& policy, AutoFreezeState state) const {
    const std::vector<std::size_t> blocks = list_measured(state.frozen + 1, held, run);
    const std::vector<double>& now = signals.interval_gradients;
    if (!is_read(now, blocks, run)) return keep(state, run, kUnread);
    state.decided = intervals_over(policy, signals.step);
    if (blocks.empty()) return keep(state, run, "no layer is left");
    const std::vector<double> previous = std::move(state.previous);
    state.previous.assign(now.size(), 0);
    for (const std::size_t block : blocks) state.previous[block] = now[block];
    if (previous.empty()) return keep(state, run, "this interval is what the next is held against");
    std::vector<double> changes;
    changes.reserve(blocks.size());
    for (const std::size_t block : blocks) {
      changes.push_back(gradient_change(previous[block], now[block]));
    }
    const double threshold = percentile_of(changes, policy.percentile);
    std::size_t calm = 0;
    while (changes[calm] < threshold) ++calm;
    if (calm > 0) state.frozen = static_cast<int>(blocks[calm - 1]);
    return answer(
        state, run,
        fmt::format("{} of {} layers are frozen: the gradient of block {} is the first to "
                    "change by {:.3g} or more.",
                    state.frozen, run.layers(), blocks[calm], threshold));
  }

  Judged operator()(const PlasticityFreeze& policy, PlasticityState state) const {
    const std::vector<std::size_t> blocks = list_measured(1, held, run);
    const bool reads_rate = policy.per_rate || policy.thaw_at_rate > 0;
    const double rate = signals.learning_rate.value_or(0);
    const bool is_rate = is_reading(rate) && rate > 0;
    if (!is_read(signals.plasticity, blocks, run) || (reads_rate && !is_rate)) {
      return keep(state, run, kUnread);
    }
    std::vector<double> values = signals.plasticity;
    if (policy.per_rate) {
      for (const std::size_t block : blocks) values[block] /= rate * rate;
      if (!is_read(values, blocks, run)) return keep(state, run, kUnread);
    }
    state.decided = intervals_over(policy, signals.step);
    state.blocks.resize(static_cast<std::size_t>(run.blocks));
    for (const std::size_t block : blocks) note(policy, values[block], state.blocks[block]);
    if (policy.thaw_at_rate > 0 && state.frozen > 0 && rate <= policy.thaw_at_rate * state.rate) {
      for (PlasticityState::Block& block : state.blocks) block.calm = 0;
      const double before = state.rate;
      state.frozen = 0;
      state.rate = 0;
      return answer(state, run,
                    fmt::format("All layers thaw: the learning rate has fallen from {} "
                                "to {}.",
                                before, rate));
    }
    return grow(policy, std::move(state), rate);
  }

  static void note(const PlasticityFreeze& policy, double value, PlasticityState::Block& block) {
    const double weight = block.is_read ? policy.smoothing : 1;
    block.is_read = true;
    block.smoothed = weight * value + (1 - weight) * block.smoothed;
    block.largest = std::max(block.largest, block.smoothed);
    const bool is_calm = block.smoothed <= policy.tolerance * block.largest;
    block.calm = is_calm ? std::min(block.calm + 1, policy.patience) : 0;
  }

  Judged grow(const PlasticityFreeze& policy, PlasticityState state, double rate) const {
    const int before = state.frozen;
    while (state.frozen < run.layers() &&
           state.blocks[static_cast<std::size_t>(state.frozen) + 1].calm >= policy.patience) {
      ++state.frozen;
    }
    if (before == 0 && state.frozen > 0) state.rate = rate;
    if (state.frozen == run.layers()) return keep(state, run, "no layer is left");
    const PlasticityState::Block& next = state.blocks[static_cast<std::size_t>(state.frozen) + 1];
    return answer(state, run,
                  fmt::format("{} of {} layers are frozen: the plasticity of the next is {:.3g}, "
                              "its largest was {:.3g}.",
                              state.frozen, run.layers(), next.smoothed, next.largest));
  }
};

// Maps a policy to the type of its state; only policies that read signals have one.
template <class Policy>
struct StateOf {
  using Type = NoState;
};
template <>
struct StateOf<PaperFreeze> {
  using Type = PaperState;
};
template <>
struct StateOf<AutoFreeze> {
  using Type = AutoFreezeState;
};
template <>
struct StateOf<PlasticityFreeze> {
  using Type = PlasticityState;
};

}  // namespace

PolicyState initial_state(const FreezePolicy& policy) {
  return std::visit(
      []<class Policy>(const Policy&) -> PolicyState { return typename StateOf<Policy>::Type{}; },
      policy);
}

bool is_state_of(const FreezePolicy& policy, const PolicyState& state, int blocks) {
  if (initial_state(policy).index() != state.index()) return false;
  const int layers = std::max(blocks - 2, 0);
  const auto fits = [&](int frozen, std::size_t entries) {
    return frozen >= 0 && frozen <= layers &&
           (entries == 0 || entries == static_cast<std::size_t>(blocks));
  };
  if (const auto* paper = std::get_if<PaperState>(&state)) {
    return paper->reached >= 0 && paper->reached <= layers;
  }
  if (const auto* change = std::get_if<AutoFreezeState>(&state)) {
    return fits(change->frozen, change->previous.size());
  }
  if (const auto* plasticity = std::get_if<PlasticityState>(&state)) {
    return fits(plasticity->frozen, plasticity->blocks.size());
  }
  return true;
}

bool is_due(const FreezePolicy& policy, const PolicyState& state, Step step) {
  return std::visit(
      [&]<class Policy>(const Policy& chosen) {
        using State = typename StateOf<Policy>::Type;
        if constexpr (std::is_same_v<State, NoState>) {
          return false;
        } else {
          return intervals_over(chosen, step) > std::get<State>(state).decided;
        }
      },
      policy);
}

Judged want(const FreezePolicy& policy, const PolicyState& state, const FreezeSignals& signals,
            const FreezeMask& held, const RunShape& run) {
  ENSURE(held.blocks() == run.blocks, "the mask in force is one of the model's");
  ENSURE(is_state_of(policy, state, run.blocks), "a state of this policy");
  if (auto wanted = want_by_step(policy, signals.step, run)) return {std::move(*wanted), state};
  return std::visit(
      [&]<class Policy>(const Policy& chosen) -> Judged {
        using State = typename StateOf<Policy>::Type;
        if constexpr (std::is_same_v<State, NoState>) {
          ENSURE(false, "a policy that reads signals");
        } else {
          const State& own = std::get<State>(state);
          if (!is_due(policy, state, signals.step)) {
            return keep(own, run,
                        fmt::format("the next decision is due at step {}",
                                    chosen.start + (own.decided + 1) * chosen.interval));
          }
          return Judge{signals, held, run}(chosen, own);
        }
      },
      policy);
}

double paper_bound(double reached, double alpha, int layers) {
  return reached + alpha * (layers - reached);
}

double gradient_change(double previous, double now) {
  if (previous == now) return 0;
  if (previous == 0) return std::numeric_limits<double>::infinity();
  return std::abs(previous - now) / previous;
}

double percentile_of(std::vector<double> values, double percentile) {
  ENSURE(!values.empty() && percentile >= 0 && percentile <= 100, "a percentile of something");
  std::sort(values.begin(), values.end());
  const double rank = percentile / 100 * static_cast<double>(values.size() - 1);
  const double floor = std::floor(rank);
  const auto below = static_cast<std::size_t>(floor);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  if (rank == floor || values[below] == values[above]) return values[below];
  const double between = values[below] + (values[above] - values[below]) * (rank - floor);
  return std::min(between, values[above]);
}

}  // namespace frazil
