// A run fills its cache where the profile says that it pays, says why not elsewhere, and has the
// same bits either way.

#include "exec/train/cache_admission.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/plan/step_window.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/json.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/distillation_profile.h"
#include "tests/support/write_freeze_trace.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr int kEpochSteps = 6;
constexpr Bytes kFeature{17 * 32 * 4};

// There is one device; all blocks but the head are frozen from the second epoch on.
TrainOptions make_options(int epochs) {
  TrainOptions options;
  options.config = tiny_config();
  options.config.epochs = epochs;
  options.config.cache.kind = CacheConfig::Kind::kOn;
  options.config.freeze.policy =
      AlphaFreeze{.alpha = 0.99, .start = 1, .interval = 1000, .unit = PaceUnit::kEpochs};
  options.profile = tiny_profile(options.config);
  options.cluster = make_uniform_cluster(1, Bytes{1 << 30}, {});
  options.command = "frazil train";
  return options;
}

TrainResult run(const TrainOptions& options, std::vector<std::string>* told = nullptr) {
  return train(options, load_data(options.config), [&](const TrainProgress& now) {
    if (told != nullptr && !now.event.empty()) told->push_back(now.event);
  });
}

std::vector<CacheEvent> events_of(const FreezeTrace& trace) {
  std::vector<CacheEvent> events;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* cache = std::get_if<CacheEvent>(&event.what)) events.push_back(*cache);
  }
  return events;
}

std::vector<CacheChange> changes_of(const FreezeTrace& trace) {
  std::vector<CacheChange> changes;
  for (const CacheEvent& event : events_of(trace)) changes.push_back(event.change);
  return changes;
}

// The second of three epochs fills and the third reads, so filling pays where writing takes less
// than the steps of one epoch spare.
TEST(CacheAdmission, FillsOnBothSidesOfBreakEvenAsTheClosedFormSays) {
  TrainOptions options = make_options(3);
  options.config.freeze.policy =
      AlphaFreeze{.alpha = 0.5, .start = 1, .interval = 1000, .unit = PaceUnit::kEpochs};
  TrainOptions uncached = options;
  uncached.config.cache = {};
  const TrainResult without = run(uncached);
  ASSERT_EQ(without.phases.size(), 2U);
  const Plan& plain = without.phases[1].plan;
  Plan cached = plain;
  cached.cache_frozen_prefix = true;
  const Duration step = without.phases[1].predicted_step;
  const Duration cached_step = simulate_plan(cached, {options.profile, options.cluster}).makespan;
  const Duration saved = step - cached_step;
  ASSERT_GT(saved, Duration{0});
  ASSERT_LT(saved, cached_step) << "reading is hidden behind work";
  const auto rate =
      static_cast<std::int64_t>(static_cast<double>(kTinySamples * kFeature.count) * 1e9 /
                                static_cast<double>((saved * kEpochSteps).count()));
  for (const bool pays : {false, true}) {
    SCOPED_TRACE(pays ? "faster" : "slower");
    options.config.cache.memory_link = {
        Duration{0}, BytesPerSecond{pays ? rate + rate / 100 : rate - rate / 100}};
    const CacheAdmission admission(
        options, {.blocks = 5, .steps = 3 * kEpochSteps, .steps_per_epoch = kEpochSteps},
        kTinySamples);
    const auto answer = admission.ask(cached, plain, kEpochSteps, {}, kFeature, {kTinySamples, 0});
    EXPECT_EQ(answer.question.steps, 2 * kEpochSteps);
    EXPECT_EQ(answer.question.reads, cached_step);
    EXPECT_EQ(answer.question.fills, step);
    EXPECT_EQ(answer.question.without, step);
    EXPECT_EQ(answer.fills, pays) << explain(answer.question, answer.choice);
    if (pays) {
      EXPECT_EQ(answer.choice.in_memory, kTinySamples);
    }
    // Half of what one of two caches has filled is looked for in the other one.
    EXPECT_FALSE(
        admission.ask(cached, plain, kEpochSteps, {}, kFeature, {kTinySamples, 0}, 2).fills);
  }
}

// A cache is filled and read step by step, which devices that go ahead of each other give up.
TEST(CacheAdmission, ChargesAFillWithTheStepsAheadThatItGivesUp) {
  TrainOptions options = make_options(3);
  options.profile = make_distillation_profile({{microseconds(20), microseconds(60)},
                                               {microseconds(20), microseconds(60)},
                                               {microseconds(20), microseconds(60)}});
  options.cluster =
      make_uniform_cluster(2, Bytes{1 << 30}, {microseconds(5), BytesPerSecond{100'000'000}});
  Plan plain;
  plain.model_hash = model_hash(options.profile);
  plain.batch_size = options.config.batch_size;
  plain.micro_batch_size = options.config.micro_batch_size;
  plain.mask = FreezeMask::frozen_prefix(3, BlockId{0});
  plain.pipelines = {make_pipeline(6, {LayerId{4}}, {DeviceId{0}, DeviceId{1}},
                                   {MicroBatchId{0}, MicroBatchId{plain.micro_batches() - 1}})};
  plain.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  plain.steps_ahead = kDecoupledSteps;
  Plan cached = plain;
  cached.cache_frozen_prefix = true;
  Plan in_step = plain;
  in_step.steps_ahead = 0;
  const Setting setting{options.profile, options.cluster};
  const CacheAdmission admission(
      options, {.blocks = 3, .steps = 3 * kEpochSteps, .steps_per_epoch = kEpochSteps},
      kTinySamples);
  const auto answer = admission.ask(cached, plain, kEpochSteps, {}, kFeature, {kTinySamples, 0});
  EXPECT_EQ(answer.question.fills, simulate_plan(in_step, setting).makespan);
  EXPECT_EQ(answer.question.without, answer.uncached);
  EXPECT_LT(answer.question.without, answer.question.fills);
}

TEST(CacheAdmission, TellsInTheTraceWhatWasFilledReadAndPredicted) {
  const TrainResult result = run(make_options(5));
  EXPECT_EQ(
      changes_of(result.trace),
      (std::vector<CacheChange>{CacheChange::kBegun, CacheChange::kFilled, CacheChange::kRead}));
  const std::vector<CacheEvent> events = events_of(result.trace);
  const Bytes all = kFeature * kTinySamples;
  EXPECT_EQ(events[0].samples, kTinySamples);
  EXPECT_EQ(events[0].memory, all);
  EXPECT_EQ(events[1].samples, kTinySamples);
  EXPECT_EQ(events[1].memory, all);
  EXPECT_EQ(events[1].predicted, events[0].predicted);
  EXPECT_GT(events[1].measured, Duration{0});
  EXPECT_EQ(events[2].samples, 3 * kTinySamples);
  EXPECT_EQ(events[2].note, "144 of 144 samples found");
  EXPECT_GT(events[2].predicted, Duration{0});
  EXPECT_GT(events[2].measured, Duration{0});
  EXPECT_EQ(parse_freeze_trace(to_jsonl(result.trace), "trace.jsonl"), result.trace);
}

TEST(CacheAdmission, DeclinesInTheLastEpochWithTheReasonAndRunsThePlanWithout) {
  std::vector<std::string> told;
  const TrainResult result = run(make_options(2), &told);
  EXPECT_EQ(changes_of(result.trace), (std::vector<CacheChange>{CacheChange::kDeclined}));
  EXPECT_EQ(events_of(result.trace)[0].note, "an epoch of 6 steps fills, and 6 are left");
  EXPECT_FALSE(result.phases[1].plan.cache_frozen_prefix);
  EXPECT_EQ(result.cache->counts, FeatureCounts{});
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const std::string& event) {
    return event.ends_with(
        "; filling the cache is declined: an epoch of 6 steps fills, and 6 are left");
  }));
  TrainOptions always = make_options(2);
  always.config.cache.admission = CacheConfig::Admission::kAlways;
  const TrainResult filled = run(always);
  EXPECT_EQ(filled.cache->counts.stored, kTinySamples);
  EXPECT_EQ(filled.weight_hash, result.weight_hash);
}

// The tier takes longer to write and read than all the layers take to run.
TEST(CacheAdmission, DeclinesATierThatIsTooSlow) {
  TrainOptions options = make_options(8);
  options.config.cache.memory_link.bandwidth = BytesPerSecond{1'000'000};
  const TrainResult declined = run(options);
  EXPECT_EQ(changes_of(declined.trace), (std::vector<CacheChange>{CacheChange::kDeclined}));
  options.config.cache = {};
  EXPECT_EQ(run(options).weight_hash, declined.weight_hash);
}

// One tier cannot keep up alone, so some samples are computed again.
TEST(CacheAdmission, KeepsFewerSamplesWhereReadingThemAllTakesTooLong) {
  TrainOptions options = make_options(40);
  options.config.cache.memory_link.bandwidth = BytesPerSecond{25'000'000};
  const CacheAdmission admission(
      options, {.blocks = 5, .steps = 240, .steps_per_epoch = kEpochSteps}, kTinySamples);
  TrainOptions probe = make_options(2);
  probe.config.cache = {};
  Plan plan = run(probe).phases[1].plan;
  Plan cached = plan;
  cached.cache_frozen_prefix = true;
  const auto answer = admission.ask(cached, plan, kEpochSteps, {}, kFeature, {kTinySamples, 0});
  EXPECT_TRUE(answer.fills);
  EXPECT_GT(answer.choice.in_memory, 0);
  EXPECT_LT(answer.choice.in_memory, kTinySamples);
  const TrainResult result = run([&] {
    TrainOptions shorter = options;
    shorter.config.epochs = 12;
    return shorter;
  }());
  const std::vector<CacheEvent> events = events_of(result.trace);
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events[0].change, CacheChange::kBegun);
  EXPECT_LT(events[0].samples, kTinySamples);
  EXPECT_EQ(result.cache->in_memory, events[0].memory) << "no more is kept than was decided";
  options.config.epochs = 12;
  options.config.cache = {};
  EXPECT_EQ(run(options).weight_hash, result.weight_hash);
}

// Deepening does not pay any more, so the features that are held go on serving, and the run keeps
// its bits.
TEST(CacheAdmission, GoesOnWithTheOldDepthWhereANewOneDoesNotPay) {
  TrainOptions options = make_options(5);
  vit_of(options.config).dropout = 0.1;
  options.config.freeze.policy =
      AlphaFreeze{.alpha = 0.5, .start = 1, .interval = 3, .unit = PaceUnit::kEpochs};
  const TrainResult result = run(options);
  ASSERT_EQ(result.phases.size(), 3U);
  const std::vector<CacheEvent> events = events_of(result.trace);
  ASSERT_EQ(changes_of(result.trace),
            (std::vector<CacheChange>{CacheChange::kBegun, CacheChange::kFilled, CacheChange::kRead,
                                      CacheChange::kDeclined}));
  EXPECT_TRUE(events[3].note.ends_with("; what is held serves on")) << events[3].note;
  EXPECT_TRUE(result.phases[2].plan.cache_frozen_prefix);
  EXPECT_EQ(result.cache->counts.stored, kTinySamples) << "of the first depth alone";
  EXPECT_EQ(result.cache->counts.found_before, kTinySamples);
  options.config.cache = {};
  EXPECT_EQ(run(options).weight_hash, result.weight_hash);
}

TEST(CacheAdmission, TellsWhenTheOldDepthHasLeft) {
  TrainOptions options = make_options(7);
  options.config.freeze.policy =
      AlphaFreeze{.alpha = 0.5, .start = 1, .interval = 2, .unit = PaceUnit::kEpochs};
  const TrainResult result = run(options);
  const std::vector<CacheEvent> events = events_of(result.trace);
  const auto left = std::find_if(events.begin(), events.end(), [](const CacheEvent& event) {
    return event.change == CacheChange::kLeft;
  });
  ASSERT_NE(left, events.end());
  EXPECT_EQ(left->layers, 5);
  EXPECT_EQ(left->samples, kTinySamples);
  EXPECT_EQ(std::prev(left)->change, CacheChange::kBegun);
}

TEST(CacheAdmission, ReplaysARecordedRunBitForBit) {
  TrainOptions options = make_options(5);
  options.config.freeze.policy =
      AlphaFreeze{.alpha = 0.5, .start = 1, .interval = 1, .unit = PaceUnit::kEpochs};
  const TrainResult recorded = run(options);
  EXPECT_FALSE(events_of(recorded.trace).empty());
  const auto path = std::filesystem::path(testing::TempDir()) / "cache_admission_trace.jsonl";
  write_freeze_trace(recorded.trace, path);
  options.config.freeze = parse_freeze(
      parse_json(R"({"policy": {"kind": "trace", "path": "cache_admission_trace.jsonl"},
                     "decorators": {}})",
                 "freeze.json"),
      options.config.model, testing::TempDir());
  const TrainResult again = run(options);
  EXPECT_EQ(again.weight_hash, recorded.weight_hash);
  EXPECT_EQ(again.loss, recorded.loss);
  EXPECT_EQ(changes_of(again.trace), changes_of(recorded.trace));
  std::filesystem::remove(path);
}

// Reads and writes lie inside the F, on the lane of the host. Features that are read come from
// there, those that are written go there.
TEST(CacheAdmission, ShowsReadsAndWritesAsMovesOfTheTimeline) {
  const TrainResult result = run(make_options(6));
  ASSERT_EQ(result.phases.size(), 2U);
  int reads = 0;
  for (const Span& span : result.phases[1].measured.spans) {
    if (span.action.kind != ActionKind::kMove) continue;
    EXPECT_EQ(span.lane, Lane::kHost);
    EXPECT_EQ(std::get<CellMove>(span.action.detail).cell, CellKind::kFeatures);
    const std::string text = to_text(span.action);
    EXPECT_EQ(parse_action(text), [&] {
      Action without = span.action;
      without.step = 0;
      return without;
    }());
    if (text.find("host>d0") != std::string::npos) ++reads;
    EXPECT_TRUE(std::any_of(result.phases[1].measured.spans.begin(),
                            result.phases[1].measured.spans.end(),
                            [&](const Span& other) {
                              return other.action.kind == ActionKind::kForward &&
                                     other.action.micro_batches == span.action.micro_batches &&
                                     other.start <= span.start && span.end <= other.end;
                            }))
        << text;
  }
  EXPECT_GE(reads, 2) << "two micro-batches in each of the sampled steps after the first epoch";
  for (const Span& span : result.phases[0].measured.spans) {
    EXPECT_NE(span.action.kind, ActionKind::kMove);
  }
}

TEST(CacheAdmission, CountsWhatItHasChecked) {
  TrainOptions options = make_options(4);
  options.config.cache.check = true;
  const std::vector<CacheEvent> events = events_of(run(options).trace);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().change, CacheChange::kChecked);
  EXPECT_EQ(events.back().samples, 2 * kTinySamples);
}

}  // namespace
}  // namespace frazil
