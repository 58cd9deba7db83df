#pragma once
// Makes configurations of every kind and random signals for the tests of freezing.

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "planner/freezing/freeze_authority.h"
#include "planner/freezing/freeze_json.h"

namespace frazil {

inline FreezeConfig parse_config(const std::string& text, int blocks) {
  return parse_freeze_config(parse_json(text, "run.json"), blocks, std::filesystem::path());
}

// Returns a policy of every kind but the trace, for at least 6 blocks, at various paces.
inline std::vector<FreezePolicy> sample_policies() {
  FreezeMask interior = FreezeMask::all_active(9);
  interior.set_active(BlockId{1}, false);
  interior.set_active(BlockId{4}, false);
  return {NoFreeze{},
          StaticFreeze{.frozen_layers = 3},
          StaticFreeze{.mask = interior},
          AlphaFreeze{.alpha = 0.25, .start = 5, .interval = 7},
          AlphaFreeze{.alpha = 0.5, .start = 1, .interval = 1, .unit = PaceUnit::kEpochs},
          PaperFreeze{.alpha = 0.4, .start = 2, .interval = 3},
          AutoFreeze{.percentile = 50, .start = 0, .interval = 4},
          LinearFreeze{.freeze_start = 0.2, .freeze_level = 0.75},
          FreezeOut{.t0 = 0.3, .power = 2},
          PlasticityFreeze{.tolerance = 0.4, .patience = 2, .smoothing = 0.7, .interval = 2},
          PlasticityFreeze{
              .tolerance = 0.5, .per_rate = true, .thaw_at_rate = 0.5, .start = 3, .interval = 5},
          GradualUnfreeze{.blocks_per_interval = 2},
          RandomFreeze{.active_layers = 3, .interval = 6},
          RandomFreeze{.active_layers = 2, .embedding_active = false, .interval = 9}};
}

inline constexpr int kSampleBlocks = 9;
inline constexpr RunShape kSampleRun{
    .blocks = kSampleBlocks, .steps = 120, .steps_per_epoch = 10, .seed = 7};

inline double draw_share(std::mt19937& random) {
  return static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
}

// Draws all signals, falling slowly with noise, and an evaluation now and then. With `gaps` some
// readings are missing or no number.
inline FreezeSignals draw_signals(std::mt19937& random, Step step, const RunShape& run,
                                  bool gaps = false) {
  FreezeSignals signals{.step = step};
  const auto draw_all = [&](std::vector<double>& values) {
    if (gaps && random() % 7 == 0) return;
    for (int block = 0; block < run.blocks; ++block) {
      values.push_back(draw_share(random) / (1 + 0.1 * static_cast<double>(step)));
    }
    if (gaps && random() % 7 == 0) values[random() % values.size()] = std::nan("");
  };
  draw_all(signals.gradient_norms);
  draw_all(signals.interval_gradients);
  draw_all(signals.plasticity);
  signals.learning_rate =
      0.1 * (1.001 - static_cast<double>(step) / static_cast<double>(run.steps));
  if (random() % 3 == 0) {
    signals.validation = Validation{
        .step = step, .loss = draw_share(random), .accuracy = 0.5 + 0.1 * draw_share(random)};
  }
  return signals;
}

// Draws decorators, each of which is set or not by chance.
inline Decorators draw_decorators(std::mt19937& random) {
  Decorators around;
  const auto draw_length = [&]() {
    return random() % 2 == 0 ? Length{1 + static_cast<Step>(random() % 12), PaceUnit::kSteps}
                             : Length{1 + static_cast<Step>(random() % 2), PaceUnit::kEpochs};
  };
  if (random() % 2 == 0) around.hysteresis = Hysteresis{draw_length()};
  if (random() % 2 == 0) around.prefix = PrefixProjection{};
  if (random() % 2 == 0) {
    around.guard = ValidationGuard{.sigmas = 2 * draw_share(random),
                                   .tolerance = 0.01,
                                   .smoothing = 0.3,
                                   .hold_evaluations = 2};
    if (random() % 2 == 0) around.guard->metric = ValidationGuard::Metric::kLoss;
    around.guard->waits = random() % 4 == 0;
  }
  if (random() % 2 == 0) around.minimum_interval = MinimumInterval{draw_length()};
  if (random() % 2 == 0) {
    around.amortisation = AmortisationGate{.margin_percent = 150};
    if (random() % 2 == 0) around.amortisation->within = draw_length();
  }
  return around;
}

// Predicts that a step saves the more the more is frozen, at a cost so high that the gate sometimes
// accepts and sometimes declines.
inline PredictedTransition predict_by_count(const FreezeMask& from, const FreezeMask& to, Step) {
  return {.saved_per_step = Duration{100 * (to.frozen_count() - from.frozen_count())},
          .cost = Duration{6000}};
}

}  // namespace frazil
