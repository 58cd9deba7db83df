// Tests the authority under random signals, policies and decorators: it keeps the promise of each,
// and a run that is stopped and resumed decides as one that was not.

#include "planner/freezing/freeze_authority.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/planner/freezing/freezing_cases.h"
#include "tests/support/sanitizer.h"
#include "tests/support/write_freeze_trace.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

FreezeAuthority make_authority(const FreezeConfig& config, RunShape run = kSampleRun) {
  return FreezeAuthority(config, run, predict_by_count);
}

bool may_thaw(const FreezePolicy& policy) {
  const std::string_view name = name_of(policy);
  if (const auto* plasticity = std::get_if<PlasticityFreeze>(&policy)) {
    return plasticity->thaw_at_rate > 0;
  }
  return name == "gradual-unfreeze" || name == "random" || name == "trace";
}

bool thaws(const FreezeMask& from, const FreezeMask& to) {
  for (int block = 0; block < from.blocks(); ++block) {
    if (from.is_frozen(BlockId{block}) && to.is_active(BlockId{block})) return true;
  }
  return false;
}

TEST(FreezeAuthority, NeverThawsUnderAPolicyThatMayNot) {
  const unsigned seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int thawed = 0;
  int froze = 0;
  for (int trial = 0; trial < draws(40); ++trial) {
    for (const FreezePolicy& policy : sample_policies()) {
      Decorators around = draw_decorators(random);
      around.guard.reset();
      FreezeAuthority authority = make_authority({policy, around});
      FreezeMask mask = authority.decide({.step = 0}).mask;
      for (Step step = 1; step < kSampleRun.steps; ++step) {
        const Decision decision =
            authority.decide(draw_signals(random, step, kSampleRun, trial % 2 == 1));
        const bool thaw = thaws(mask, decision.mask);
        ASSERT_TRUE(!thaw || may_thaw(policy)) << name_of(policy) << " at " << step;
        thawed += thaw ? 1 : 0;
        froze += decision.mask.frozen_count() > mask.frozen_count() ? 1 : 0;
        mask = decision.mask;
      }
    }
  }
  EXPECT_GT(thawed, draws(100));
  EXPECT_GT(froze, draws(500));
}

TEST(FreezeAuthority, KeepsWhatEveryDecoratorPromises) {
  const unsigned seed = 12;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<std::string, int> by;
  for (int trial = 0; trial < draws(60); ++trial) {
    for (const FreezePolicy& policy : sample_policies()) {
      const Decorators around = draw_decorators(random);
      FreezeAuthority authority = make_authority({policy, around});
      std::optional<Step> changed;
      FreezeMask mask;
      for (Step step = 0; step < kSampleRun.steps; ++step) {
        const FreezeSignals signals = draw_signals(random, step, kSampleRun, trial % 2 == 1);
        const Decision decision = authority.decide(signals);
        ++by[decision.by];
        ASSERT_FALSE(decision.reason.empty());
        ASSERT_EQ(decision.reason.back(), '.');
        ASSERT_TRUE(decision.mask.is_active(BlockId{kSampleBlocks - 1}));
        if (around.prefix) {
          ASSERT_EQ(decision.mask, project_prefix(decision.mask));
        }
        ASSERT_EQ(decision.changed, step == 0 || decision.mask != mask);
        if (step > 0 && decision.changed) {
          if (around.minimum_interval && changed) {
            const Length apart = in_steps(around.minimum_interval->length, 10);
            ASSERT_GE(step - *changed, apart.count);
          }
          if (around.amortisation && !thaws(mask, decision.mask)) {
            const PredictedTransition predicted = predict_by_count(mask, decision.mask, step);
            Step left = kSampleRun.steps - step;
            if (around.amortisation->within) {
              left = std::min(left, in_steps(*around.amortisation->within, 10).count);
            }
            ASSERT_GE(predicted.saved_per_step.count() * left * 2, predicted.cost.count() * 3);
          }
          changed = step;
        }
        mask = decision.mask;
      }
    }
  }
  for (const char* name :
       {"hysteresis", "prefix", "validation_guard", "minimum_interval", "amortisation"}) {
    EXPECT_GT(by[name], draws(50)) << name;
  }
}

// A block under hysteresis alone changes only where the policy has wanted it at each of the last
// steps.
TEST(FreezeAuthority, HysteresisFollowsAPolicyThatKeepsItsMind) {
  const unsigned seed = 13;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr Step kLength = 4;
  const RandomFreeze policy{.active_layers = 3, .interval = 3};
  const RandomFreeze slower{.active_layers = 3, .interval = 8};
  for (const RandomFreeze& chosen : {policy, slower}) {
    FreezeAuthority authority = make_authority({chosen, {.hysteresis = Hysteresis{{kLength}}}});
    std::vector<FreezeMask> wanted;
    FreezeMask mask;
    int changes = 0;
    for (Step step = 0; step < 120; ++step) {
      wanted.push_back(want_by_step(chosen, step, kSampleRun)->mask);
      const FreezeMask before = mask;
      mask = authority.decide({.step = step}).mask;
      if (step == 0) continue;
      for (int block = 0; block < kSampleBlocks; ++block) {
        if (mask.is_active(BlockId{block}) == before.is_active(BlockId{block})) continue;
        ++changes;
        for (Step back = 0; back <= kLength; ++back) {
          ASSERT_EQ(wanted[static_cast<std::size_t>(step - back)].is_active(BlockId{block}),
                    mask.is_active(BlockId{block}));
        }
      }
    }
    EXPECT_GT(changes, 5);
  }
}

// There is room for masks with at least three frozen blocks. Under every policy and decorator the
// mask in force has room, and a declined mask is the one that would have been decided.
TEST(FreezeAuthority, NeverChangesToAMaskThatHasNoRoom) {
  const unsigned seed = 31;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const FindRoom has_room = [](const FreezeMask& mask) { return mask.frozen_count() >= 3; };
  int declined = 0;
  int changed = 0;
  for (int trial = 0; trial < draws(20); ++trial) {
    for (const FreezePolicy& policy : sample_policies()) {
      const FreezeConfig config{policy, draw_decorators(random)};
      FreezeAuthority authority(config, kSampleRun, predict_by_count, has_room);
      FreezeMask mask = authority.decide({.step = 0}).mask;
      for (Step step = 1; step < kSampleRun.steps; ++step) {
        FreezeAuthority free(config, kSampleRun, authority.state(), predict_by_count);
        const FreezeSignals signals = draw_signals(random, step, kSampleRun);
        const Decision decision = authority.decide(signals);
        const Decision wanted = free.decide(signals);
        if (decision.by == kNoRoom) {
          ++declined;
          ASSERT_EQ(decision.mask, mask);
          ASSERT_FALSE(decision.changed);
          ASSERT_FALSE(has_room(wanted.mask));
          ASSERT_EQ(decision.reason, "Mask " + mask.text() + " stays: no plan has room for " +
                                         wanted.mask.text() + ".");
        } else {
          ASSERT_EQ(decision, wanted);
          ASSERT_TRUE(!decision.changed || has_room(decision.mask));
        }
        changed += decision.changed ? 1 : 0;
        mask = decision.mask;
      }
    }
  }
  EXPECT_GT(declined, draws(100));
  EXPECT_GT(changed, draws(100));
}

// The foreseen mask comes true if the policy reads the step alone, and no other mask comes before
// it. Under other policies it is a guess, which never is the mask in force.
void expect_foreseen(const RunShape& run) {
  constexpr Step kWithin = 8;
  const unsigned seed = 17;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int foreseen = 0;
  int guessed = 0;
  for (const FreezePolicy& policy : sample_policies()) {
    for (const bool prefix : {false, true}) {
      Decorators around;
      if (prefix) around.prefix.emplace();
      const FreezePolicy paced = in_steps(policy, run.steps_per_epoch);
      FreezeAuthority authority = make_authority({policy, around}, run);
      EXPECT_EQ(authority.foresee(kWithin), std::nullopt) << "before the first decision";
      (void)authority.decide(draw_signals(random, 0, run));
      for (Step step = 0; step + 1 < run.steps; ++step) {
        const FreezeMask held = authority.state().mask;
        const std::optional<FreezeMask> next = authority.foresee(kWithin);
        ASSERT_NE(next, held);
        if (!want_by_step(paced, step, run)) {
          ASSERT_EQ(next.has_value(), held.frozen_count() < run.counted() - 1);
          ASSERT_TRUE(!next || next->frozen_count() > held.frozen_count());
          guessed += next ? 1 : 0;
        } else {
          FreezeAuthority ahead = authority;
          std::optional<FreezeMask> comes;
          for (Step later = step + 1; later <= step + kWithin && later < run.steps; ++later) {
            const Decision decision = ahead.decide({.step = later});
            if (!comes && decision.changed) comes = decision.mask;
          }
          ASSERT_EQ(next, comes) << name_of(policy) << " at " << step;
          foreseen += next ? 1 : 0;
        }
        (void)authority.decide(draw_signals(random, step + 1, run));
      }
    }
  }
  EXPECT_GT(foreseen, 500);
  EXPECT_GT(guessed, 100);
}

TEST(FreezeAuthority, ForeseesTheNextMask) { expect_foreseen(kSampleRun); }

TEST(FreezeAuthority, ForeseesTheNextMaskWhereTheLastBlockTrainsNothing) {
  RunShape distilled = kSampleRun;
  distilled.untrained = 1;
  expect_foreseen(distilled);
}

TEST(FreezeAuthority, GoesOnFromAStateThatWasWrittenAndReadBackAtAnyMoment) {
  const unsigned seed = 14;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < draws(30); ++trial) {
    for (const FreezePolicy& policy : sample_policies()) {
      const FreezeConfig config{policy, draw_decorators(random)};
      FreezeAuthority authority = make_authority(config);
      std::optional<FreezeAuthority> resumed;
      const Step stop = static_cast<Step>(random() % 120);
      if (stop == 0) resumed.emplace(config, kSampleRun, initial_state(config), predict_by_count);
      for (Step step = 0; step < kSampleRun.steps; ++step) {
        const FreezeSignals signals = draw_signals(random, step, kSampleRun, trial % 2 == 1);
        const Decision decision = authority.decide(signals);
        if (resumed) {
          ASSERT_EQ(resumed->decide(signals), decision) << name_of(policy) << " at " << step;
          ASSERT_EQ(resumed->state(), authority.state());
        }
        if (step + 1 == stop) {
          const std::string text = to_json(authority.state(), config);
          const FreezeState state =
              parse_freeze_state(parse_json(text, "state.json"), config, kSampleBlocks);
          ASSERT_EQ(state, authority.state()) << text;
          ASSERT_EQ(to_json(state, config), text);
          resumed.emplace(config, kSampleRun, state, predict_by_count);
        }
      }
    }
  }
}

TEST(FreezeAuthority, ReadsNothingButWhatItSaysItNeeds) {
  const unsigned seed = 15;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < draws(30); ++trial) {
    for (const FreezePolicy& policy : sample_policies()) {
      const FreezeConfig config{policy, draw_decorators(random)};
      FreezeAuthority told_all = make_authority(config);
      FreezeAuthority told_needed = make_authority(config);
      const std::vector<Signal> ever = needed_signals(config);
      for (Step step = 0; step < kSampleRun.steps; ++step) {
        const FreezeSignals all = draw_signals(random, step, kSampleRun);
        FreezeSignals needed{.step = step};
        for (const Signal signal : told_needed.needed_signals(step)) {
          ASSERT_NE(std::find(ever.begin(), ever.end(), signal), ever.end());
          switch (signal) {
            case Signal::kGradientNorms:
              needed.gradient_norms = all.gradient_norms;
              break;
            case Signal::kIntervalGradients:
              needed.interval_gradients = all.interval_gradients;
              break;
            case Signal::kPlasticity:
              needed.plasticity = all.plasticity;
              break;
            case Signal::kLearningRate:
              needed.learning_rate = all.learning_rate;
              break;
            case Signal::kValidation:
              needed.validation = all.validation;
              break;
          }
        }
        ASSERT_EQ(told_needed.decide(needed), told_all.decide(all)) << name_of(policy);
      }
    }
  }
}

TEST(FreezeAuthority, SaysWhichSignalsAConfigurationNeeds) {
  const auto names = [](const std::vector<Signal>& signals) {
    std::string text;
    for (const Signal signal : signals) text += std::string(name_of(signal)) + " ";
    return text;
  };
  EXPECT_EQ(names(needed_signals(FreezeConfig{AlphaFreeze{}, {}})), "");
  EXPECT_EQ(names(needed_signals(FreezeConfig{PaperFreeze{}, {}})), "gradient_norms ");
  EXPECT_EQ(names(needed_signals(FreezeConfig{AutoFreeze{}, {}})), "interval_gradients ");
  EXPECT_EQ(names(needed_signals(FreezeConfig{PlasticityFreeze{}, {}})), "plasticity ");
  EXPECT_EQ(names(needed_signals(
                FreezeConfig{PlasticityFreeze{.thaw_at_rate = 0.1}, {.guard = ValidationGuard{}}})),
            "plasticity learning_rate validation ");
  EXPECT_FALSE(needs_prediction(FreezeConfig{}));
  EXPECT_TRUE(needs_prediction(FreezeConfig{NoFreeze{}, {.amortisation = AmortisationGate{}}}));
  FreezeAuthority authority =
      make_authority({PaperFreeze{.interval = 2, .unit = PaceUnit::kEpochs}, {}});
  EXPECT_EQ(names(authority.needed_signals(19)), "");
  EXPECT_EQ(names(authority.needed_signals(20)), "gradient_norms ");
  authority.decide(FreezeSignals{.step = 20, .gradient_norms = std::vector<double>(9, 1.0)});
  EXPECT_EQ(names(authority.needed_signals(21)), "");
}

TEST(FreezeAuthority, ReplaysTheMasksOfARecordedRun) {
  const unsigned seed = 16;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       ("frazil-replay-" + std::to_string(std::random_device()()));
  for (const FreezePolicy& policy : sample_policies()) {
    FreezeAuthority recorded = make_authority({policy, draw_decorators(random)});
    FreezeTrace trace;
    trace.model_hash = "0";
    trace.blocks.assign(kSampleBlocks, "block");
    trace.steps = kSampleRun.steps;
    trace.batch_size = 1;
    std::vector<FreezeMask> masks;
    for (Step step = 0; step < kSampleRun.steps; ++step) {
      const Decision decision = recorded.decide(draw_signals(random, step, kSampleRun));
      if (decision.changed) {
        FreezeEvent& event = trace.events.emplace_back();
        event.step = step;
        event.what = MaskEvent{decision.mask};
      }
      masks.push_back(decision.mask);
    }
    write_freeze_trace(trace, folder / "run.jsonl");
    const FreezeConfig config = parse_freeze_config(
        parse_json(R"({"policy": {"kind": "trace", "path": "run.jsonl"}})", "run.json"),
        kSampleBlocks, folder);
    FreezeAuthority replayed = make_authority(config);
    for (Step step = 0; step < kSampleRun.steps; ++step) {
      ASSERT_EQ(replayed.decide({.step = step}).mask, masks[static_cast<std::size_t>(step)])
          << name_of(policy) << " at " << step;
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(FreezeAuthority, NamesWhoDecidedAndWhy) {
  FreezeAuthority authority = make_authority(
      {AlphaFreeze{.alpha = 1.0 / 3, .start = 1, .unit = PaceUnit::kEpochs},
       {.guard = ValidationGuard{.sigmas = 0, .tolerance = 0.01, .hold_evaluations = 1},
        .minimum_interval = MinimumInterval{{15}}}},
      {.blocks = 14, .steps = 100, .steps_per_epoch = 10});
  const auto told = [&](const FreezeSignals& signals) {
    const Decision decision = authority.decide(signals);
    return decision.mask.text() + (decision.changed ? " new, " : " kept, ") + decision.by + ": " +
           decision.reason;
  };
  EXPECT_EQ(told({.step = 0}),
            "11111111111111 new, alpha: After 0 intervals alpha 0.333 freezes 0 of 12 "
            "layers.");
  EXPECT_EQ(told({.step = 10, .validation = Validation{.step = 10, .accuracy = 0.9}}),
            "00000111111111 new, alpha: After 1 interval alpha 0.333 freezes 4 of 12 "
            "layers.");
  EXPECT_EQ(told({.step = 20}),
            "00000111111111 kept, minimum_interval: The mask changed at step 10, and 15 steps are "
            "to lie between two changes.");
  EXPECT_EQ(told({.step = 25}),
            "00000000111111 new, alpha: After 2 intervals alpha 0.333 freezes 7 of 12 "
            "layers.");
  EXPECT_EQ(told({.step = 40, .validation = Validation{.step = 40, .accuracy = 0.5}}),
            "11111111111111 new, validation_guard: All blocks thaw: accuracy 0.5 is worse than 0.9 "
            "before by more than 0.01.");
  EXPECT_EQ(
      told({.step = 60}),
      "11111111111111 kept, validation_guard: All blocks stay active for 1 more evaluations.");
  EXPECT_EQ(told({.step = 60}), "11111111111111 kept, alpha: Step 60 is decided already.");
  EXPECT_THROW(authority.decide({.step = 59}), std::logic_error);
}

TEST(FreezeAuthority, RefusesWhatCannotBeItsOwn) {
  const FreezeConfig gated{NoFreeze{}, {.amortisation = AmortisationGate{}}};
  EXPECT_THROW(FreezeAuthority(gated, kSampleRun), std::logic_error);
  FreezeState state = initial_state(FreezeConfig{PaperFreeze{}, {}});
  EXPECT_THROW(FreezeAuthority(FreezeConfig{}, kSampleRun, state), std::logic_error);
  state = initial_state(FreezeConfig{});
  state.step = 3;
  state.mask = FreezeMask::all_active(5);
  EXPECT_THROW(FreezeAuthority(FreezeConfig{}, kSampleRun, state), std::logic_error);
}

}  // namespace
}  // namespace frazil
