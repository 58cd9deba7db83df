#include "exec/event_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "exec/trainer.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/exec/tiny_run.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr Step kSteps = 18;

class EventLogFile : public testing::Test {
 protected:
  EventLogFile() {
    folder_ = fs::temp_directory_path() / ("frazil-log-" + std::to_string(getpid()));
    options_.config = tiny_config();
    options_.profile = tiny_profile(options_.config);
    options_.cluster = tiny_cluster(Bytes{600'000});
    options_.event_log = folder_ / "events.jsonl";
    data_ = load_data(options_.config);
  }
  ~EventLogFile() override { fs::remove_all(folder_); }

  FreezeTrace read() const { return read_freeze_trace(options_.event_log); }

  fs::path folder_;
  TrainOptions options_;
  Dataset data_;
};

template <class Event>
std::vector<Step> steps_of(const FreezeTrace& trace) {
  std::vector<Step> steps;
  for (const FreezeEvent& event : trace.events) {
    if (std::holds_alternative<Event>(event.what)) steps.push_back(event.step);
  }
  return steps;
}

std::vector<Step> all_steps() {
  std::vector<Step> steps;
  for (Step step = 0; step < kSteps; ++step) steps.push_back(step);
  return steps;
}

// Without what only one of trace and log has.
std::vector<FreezeEvent> shared_events(const FreezeTrace& trace) {
  std::vector<FreezeEvent> events;
  for (const FreezeEvent& event : trace.events) {
    if (std::holds_alternative<CostEvent>(event.what) ||
        std::holds_alternative<StepEvent>(event.what)) {
      continue;
    }
    events.push_back(event);
  }
  return events;
}

TEST_F(EventLogFile, HasALinePerStepAndTheEventsOfTheTrace) {
  const TrainResult result = train(options_, data_);
  const FreezeTrace log = read();
  EXPECT_EQ(steps_of<StepEvent>(log), all_steps());
  EXPECT_EQ(shared_events(log), shared_events(result.trace));
  EXPECT_EQ(log.provenance, result.trace.provenance);
  for (const FreezeEvent& event : log.events) {
    if (const auto* step = std::get_if<StepEvent>(&event.what)) {
      EXPECT_GT(step->loss, 0);
      EXPECT_EQ(step->samples, 8);
      EXPECT_GT(step->time, Duration{0});
    }
  }
}

TEST_F(EventLogFile, IsThereWhileTheRunLasts) {
  (void)train(options_, data_, [&](const TrainProgress& now) {
    if (now.step == 0 || !now.event.empty()) return;
    EXPECT_EQ(steps_of<StepEvent>(read()).size(), static_cast<std::size_t>(now.step));
  });
}

// Stopped after 7 steps, its last line torn; then ended at 7 again by an error, and done again.
TEST_F(EventLogFile, OfAResumedRunHasEveryStepOnce) {
  const TrainResult whole = train(options_, data_);
  const std::vector<FreezeEvent> expected = read().events;
  options_.durable = DurableOptions{.folder = folder_ / "checkpoints", .every = 4};
  Step done = 0;
  options_.stop = [&] { return ++done == 7; };
  (void)train(options_, data_);
  EXPECT_EQ(steps_of<CheckpointEvent>(read()), (std::vector<Step>{4, 7}));
  std::ofstream(options_.event_log, std::ios::app) << R"({"step":7,"kind":"st)";
  options_.stop = {};
  options_.durable->resume = true;
  EXPECT_EQ(train(options_, data_).weight_hash, whole.weight_hash);
  const FreezeTrace log = read();
  EXPECT_EQ(steps_of<StepEvent>(log), all_steps());
  EXPECT_EQ(steps_of<CheckpointEvent>(log), (std::vector<Step>{4, 7, 8, 12, 16}));
  EXPECT_EQ(steps_of<EvalEvent>(log), (std::vector<Step>{6, 12, 18}));
  EXPECT_EQ(log.provenance.at("resumed_from_step"), "7");
}

TEST_F(EventLogFile, OfAnotherModelIsNotGoneOnWith) {
  FreezeTrace header;
  header.model_hash = "0123456789abcdef";
  header.blocks = {"a", "b"};
  header.steps = 9;
  fs::create_directories(folder_);
  {
    EventLog log(options_.event_log, header, 0);
    log.write({3, StepEvent{0.5, 8, Duration{1}}});
  }
  EXPECT_EQ(read().events.size(), 1U);
  { const EventLog again(options_.event_log, header, 5); }
  EXPECT_EQ(read().events.size(), 1U);
  { const EventLog again(options_.event_log, header, 3); }
  EXPECT_TRUE(read().events.empty()) << "step 3 is done again";
  {
    EventLog log(options_.event_log, header, 0);
    log.write({3, StepEvent{0.5, 8, Duration{1}}});
  }
  header.model_hash = "0123456789abcdee";
  { const EventLog again(options_.event_log, header, 5); }
  EXPECT_TRUE(read().events.empty());
}

TEST_F(EventLogFile, ThatCannotBeWrittenEndsNoRun) {
  fs::create_directories(options_.event_log);  // a folder is in the way
  std::vector<std::string> told;
  const TrainResult result = train(options_, data_, [&](const TrainProgress& now) {
    if (!now.event.empty()) told.push_back(now.event);
  });
  EXPECT_EQ(result.trace.steps, kSteps);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().find("the event log ends here: " + options_.event_log.string()), 0U)
      << told.front();
}

}  // namespace
}  // namespace frazil
