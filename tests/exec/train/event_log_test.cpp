#include "exec/train/event_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "analysis/foreign_cores.h"
#include "analysis/html/html_report.h"
#include "analysis/run_summary.h"
#include "exec/train/earlier_log.h"
#include "exec/train/train_files.h"
#include "exec/train/trainer.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"
#include "tests/exec/support/tiny_run.h"
#include "traces/log_costs.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

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

std::vector<Step> list_checkpoints(const FreezeTrace& trace) {
  std::vector<Step> steps;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* saved = std::get_if<CheckpointEvent>(&event.what)) steps.push_back(saved->of);
  }
  return steps;
}

std::vector<Step> all_steps() {
  std::vector<Step> steps;
  for (Step step = 0; step < kTinySteps; ++step) steps.push_back(step);
  return steps;
}

// Leaves out the events that only the trace or only the log has.
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
  // The log cannot tell how busy other programs will have been.
  Provenance known_before = result.trace.provenance;
  EXPECT_EQ(known_before.erase(kForeignCores), result.foreign_cores ? 1U : 0U);
  EXPECT_EQ(log.provenance, known_before);
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

// The run stops after 7 steps, and a torn line of the step after is all that is left of a second
// process.
TEST_F(EventLogFile, OfAResumedRunHasEveryStepOnce) {
  const TrainResult whole = train(options_, data_);
  const std::vector<FreezeEvent> expected = read().events;
  options_.durable = DurableOptions{.folder = folder_ / "checkpoints", .every = 4};
  Step done = 0;
  options_.stop = [&] { return ++done == 7; };
  (void)train(options_, data_);
  EXPECT_EQ(list_checkpoints(read()), (std::vector<Step>{4, 7}));
  std::ofstream(options_.event_log, std::ios::app) << R"({"step":7,"kind":"st)";
  options_.stop = {};
  options_.durable->resume = true;
  EXPECT_EQ(train(options_, data_).weight_hash, whole.weight_hash);
  const FreezeTrace log = read();
  EXPECT_EQ(steps_of<StepEvent>(log), all_steps());
  EXPECT_EQ(list_checkpoints(log), (std::vector<Step>{4, 7, 8, 12, 16, 18}));
  EXPECT_EQ(steps_of<EvalEvent>(log), (std::vector<Step>{6, 12, 18}));
  EXPECT_EQ(log.provenance.at("resumed_from_step"), "7");
}

FreezeTrace make_header() {
  FreezeTrace header;
  header.model_hash = "0123456789abcdef";
  header.blocks = {"a", "b"};
  header.steps = 9;
  return header;
}

TEST_F(EventLogFile, IsGoneOnWithWhereItHasEveryStepOfThisModel) {
  FreezeTrace header = make_header();
  const auto write = [&](const std::vector<Step>& steps) {
    EventLog log(options_.event_log, header);
    for (const Step step : steps) log.write({step, StepEvent{0.5, 8, Duration{1}}});
  };
  const auto count = [&](Step first) -> std::optional<std::size_t> {
    const auto log = read_earlier_log(options_.event_log, header, first);
    return log ? std::optional(log->log.events.size()) : std::nullopt;
  };
  EXPECT_EQ(count(3), std::nullopt) << "no log";
  write({0, 1, 2, 3});
  EXPECT_EQ(count(3), 3U) << "step 3 is done again";
  EXPECT_EQ(count(4), 4U);
  EXPECT_EQ(count(5), std::nullopt) << "step 4 is missing";
  write({0, 2, 3});
  EXPECT_EQ(count(3), std::nullopt) << "step 1 is missing";
  write({0, 1, 2});
  header.model_hash = "0123456789abcdee";
  EXPECT_EQ(count(3), std::nullopt);
  write({0, 1, 2});
  header.steps = 10;
  EXPECT_EQ(count(3), 3U) << "the run was given more steps";
  header.steps = 7;
  EXPECT_EQ(count(3), std::nullopt);
  std::ofstream(options_.event_log) << "a shopping list\n";
  EXPECT_EQ(count(3), std::nullopt);
}

// The log has ten steps, a phase that begins at step 0 and one that begins at step 5.
TEST_F(EventLogFile, LosesNoMoreThanTwoLinesToOneFlippedBit) {
  FreezeTrace header = make_header();
  header.steps = 10;
  header.provenance["command"] = "frazil train";
  const std::vector<FreezeEvent> masks{{0, MaskEvent{FreezeMask::all_active(2)}},
                                       {5, MaskEvent{FreezeMask::parse("01", "test", 0)}}};
  const auto begin_phase = [&](EventLog& log, std::size_t phase) {
    const Step step = masks[phase].step;
    log.write(masks[phase]);
    log.write({step, PlanEvent{"phase-" + std::to_string(phase) + "/plan.json", "a plan"}});
    log.write({step, TransitionEvent{}});
  };
  {
    EventLog log(options_.event_log, header);
    begin_phase(log, 0);
    for (Step step = 0; step < 10; ++step) {
      if (step == 5) log.write({5, EvalEvent{1, 0.5, 0.5, 0.5}});
      if (step == 5) begin_phase(log, 1);
      log.write({step, StepEvent{0.25, 8, Duration{1}}});
    }
  }
  const std::string whole = read_text_file(options_.event_log);
  const std::size_t events = read().events.size();
  // A part of all bits, each place of a byte among them.
  for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 7) {
    SCOPED_TRACE(bit);
    std::string broken = whole;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << bit % 8));
    std::ofstream(options_.event_log) << broken;
    for (const Step length : {10, 14}) {  // of the run, which may have been given more steps
      header.steps = length;
      const auto earlier = read_earlier_log(options_.event_log, header, 10, masks);
      ASSERT_TRUE(earlier) << broken;
      EXPECT_GE(earlier->log.events.size() + 2, events);
      EXPECT_LE(earlier->lost_lines, 2U);
      EXPECT_EQ(steps_of<PlanEvent>(earlier->log).size(), 2U) << "phases keep their numbers";
      EXPECT_GE(masks_of(earlier->log).size(), 2U);
      EXPECT_NO_THROW((void)to_jsonl(earlier->log));
    }
  }
}

TEST_F(EventLogFile, WithADamagedLineIsKeptAsideAndGoneOnWith) {
  options_.durable = DurableOptions{.folder = folder_ / "checkpoints", .every = 4};
  Step done = 0;
  options_.stop = [&] { return ++done == 7; };
  (void)train(options_, data_);
  std::string text = read_text_file(options_.event_log);
  text[text.find("\"step\":3,\"kind\":\"step\"") + 20] ^= 1;
  write_text_file(options_.event_log, text);
  options_.stop = {};
  options_.durable->resume = true;
  std::string told;
  (void)train(options_, data_, [&](const TrainProgress& now) {
    if (now.is_warning) told += now.event + "\n";
  });
  const std::string expected =
      "damaged lines of the event log are left out, 1 in all; the file is kept as ";
  ASSERT_NE(told.find(expected), std::string::npos) << told;
  const std::size_t begin = told.find(expected) + expected.size();
  const std::string name = told.substr(begin, told.find('\n', begin) - begin);
  EXPECT_EQ(read_text_file(folder_ / name), text);
  std::vector<Step> steps = all_steps();
  std::erase(steps, 3);
  EXPECT_EQ(steps_of<StepEvent>(read()), steps);
}

TEST_F(EventLogFile, ThatIsALinkIsNotFollowed) {
  FreezeTrace header = make_header();
  fs::create_directories(folder_);
  write_text_file(folder_ / "mine.txt", "mine");
  fs::create_symlink(folder_ / "mine.txt", options_.event_log);
  EXPECT_FALSE(read_earlier_log(options_.event_log, header, 0));
  EXPECT_EQ(keep_copy(options_.event_log), "");
  {
    EventLog log(options_.event_log, header);
    log.write({0, StepEvent{0.5, 8, Duration{1}}});
  }
  EXPECT_EQ(read_text_file(folder_ / "mine.txt"), "mine");
  EXPECT_FALSE(fs::is_symlink(options_.event_log));
  EXPECT_EQ(read().events.size(), 1U);
}

TEST_F(EventLogFile, BeginsWithWhatItsHeaderHolds) {
  FreezeTrace header = make_header();
  header.events = {{0, MaskEvent{FreezeMask::all_active(2)}}};
  {
    EventLog log(options_.event_log, header);
    log.write({3, StepEvent{0.5, 8, Duration{1}}});
  }
  EXPECT_EQ(read().events.size(), 2U);
  EXPECT_TRUE(read().open);
}

// Returns the events of a log as its trace has them.
std::vector<FreezeEvent> add_up(const FreezeTrace& log) {
  std::vector<FreezeEvent> events = add_costs(log);
  std::erase_if(events, [](const FreezeEvent& event) {
    return std::holds_alternative<StepEvent>(event.what);
  });
  return events;
}

TEST_F(EventLogFile, WithItsCostsAddedUpIsTheTrace) {
  options_.config.data.train_samples = 45;  // the last step of an epoch is short
  const TrainResult result = train(options_, load_data(options_.config));
  EXPECT_EQ(add_up(read()), result.trace.events);
}

TEST_F(EventLogFile, OfABatchThatGrowsIsTheTraceToo) {
  options_.config.data.train_samples = 44;
  options_.config.batch_growth = BatchGrowth::kWithPipelines;
  const TrainResult result = train(options_, load_data(options_.config));
  ASSERT_EQ(result.phases.back().plan.batch_size, 16);
  EXPECT_GT(result.phases.back().steps, 0);
  EXPECT_EQ(add_up(read()), result.trace.events);
}

// Keeps evaluations, and masks with who decided. It drops what a process repeats when it begins: a
// decision that was made before it, of which a checkpoint keeps no reason.
std::vector<FreezeEvent> course_of(const FreezeTrace& trace) {
  std::vector<FreezeEvent> events;
  std::optional<FreezeMask> mask;
  for (const FreezeEvent& event : trace.events) {
    if (std::holds_alternative<EvalEvent>(event.what)) events.push_back(event);
    const auto* decided = std::get_if<MaskEvent>(&event.what);
    if (decided == nullptr) continue;
    if (decided->mask != mask) {
      events.push_back({event.step, MaskEvent{decided->mask, decided->by, ""}});
    }
    mask = decided->mask;
  }
  return events;
}

std::int64_t sum_costs(const FreezeTrace& trace) {
  std::int64_t steps = 0;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* cost = std::get_if<CostEvent>(&event.what)) steps += cost->steps;
  }
  return steps;
}

// The run ends three times: between two epochs, inside one, and by a crash that loses steps after
// the checkpoint. Trace and report are of the whole run, and the trace replays it.
TEST_F(EventLogFile, OfAResumedRunGivesTheTraceOfTheWhole) {
  const TrainResult whole = train(options_, data_);
  const fs::path out = folder_ / "out";
  options_.event_log = out / "events.jsonl";
  options_.keep_phase = [&](const TrainPhase& phase, std::size_t number) {
    write_phase(phase, number, out);
  };
  options_.durable = DurableOptions{.folder = out / "checkpoints", .every = 4};
  options_.durable->in_background = false;  // or a process that is thrown out of may save or not
  Step done = 0;
  options_.stop = [&] { return ++done == 6; };
  (void)train(options_, data_);
  options_.durable->resume = true;
  done = 0;
  options_.stop = [&] { return ++done == 3; };
  (void)train(options_, data_);
  const ReportRun stopped = read_run(out.string());
  EXPECT_EQ(summarize("out", stopped.trace).interrupted_after, 9);
  EXPECT_EQ(summarize("out", stopped.trace).steps, 9);
  // Steps 9 to 13 are done; the last checkpoint has 9 to 11.
  options_.stop = {};
  struct Killed {};
  EXPECT_THROW((void)train(options_, data_,
                           [](const TrainProgress& now) {
                             if (now.step == 14) throw Killed{};
                           }),
               Killed);
  const ReportRun killed = read_run(out.string());
  EXPECT_TRUE(killed.trace.open);
  EXPECT_EQ(summarize("out", killed.trace).interrupted_after, 14);
  const TrainResult resumed = train(options_, data_);
  EXPECT_EQ(resumed.first_step, 12);
  write_result(resumed, out);

  EXPECT_EQ(resumed.weight_hash, whole.weight_hash);
  EXPECT_EQ(course_of(resumed.trace), course_of(whole.trace));
  EXPECT_EQ(sum_costs(resumed.trace), kTinySteps);
  const ReportRun report = read_run(out.string());
  EXPECT_EQ(report.trace, resumed.trace);
  const RunSummary summary = summarize("out", report.trace);
  EXPECT_EQ(summary.steps, kTinySteps);
  EXPECT_EQ(summary.unmeasured_steps, 0);
  EXPECT_EQ(summary.evaluations, 3);
  EXPECT_EQ(summary.interrupted_after, std::nullopt);
  std::vector<Step> begins;
  for (const ReportPhase& phase : report.phases) {
    begins.push_back(phase.first_step);
    EXPECT_FALSE(phase.predicted.spans.empty());
    for (const Span& span : phase.measured.spans) EXPECT_GE(span.action.step, phase.first_step);
  }
  EXPECT_EQ(begins, (std::vector<Step>{0, 6, 9, 12}))
      << "12: the mask changes, and a process begins";
  EXPECT_EQ(resumed.first_phase, 3U);

  TrainOptions replay = options_;
  replay.durable.reset();
  replay.event_log.clear();
  write_text_file(folder_ / "freeze.json",
                  R"({"policy": {"kind": "trace", "path": "out/trace.jsonl"}})");
  replay.config.freeze =
      parse_freeze(parse_json(read_text_file(folder_ / "freeze.json"), "freeze.json"),
                   replay.config.model, folder_);
  EXPECT_EQ(train(replay, data_).weight_hash, whole.weight_hash);
}

TEST_F(EventLogFile, BesideAPhaseLosesWhatAKilledProcessHadHalfWritten) {
  const TrainResult result = train(options_, data_);
  write_result(result, folder_);
  const std::vector<fs::path> left{
      folder_ / "events.jsonl.tmp.4231.0", folder_ / "phase-0/plan.json.tmp.4231.0",
      folder_ / "phase-2/measured.csv.tmp.4231.2", folder_ / ".tmp-phase-3/plan.json",
      folder_ / ".tmp-phase-3/measured.csv.tmp.4231.0"};
  for (const fs::path& file : left) write_text_file(file, "half");
  write_text_file(folder_ / "phase-0/note.tmp.1", "mine");
  write_phase(result.phases[1], 1, folder_);
  for (const fs::path& file : left) EXPECT_FALSE(fs::exists(file)) << file;
  EXPECT_FALSE(fs::exists(folder_ / ".tmp-phase-3"));
  EXPECT_TRUE(fs::exists(folder_ / "phase-0/note.tmp.1"));
  EXPECT_TRUE(fs::exists(folder_ / "phase-0/plan.json"));
}

// The log that is left lacks steps, so the record begins where the process does, and says so.
TEST_F(EventLogFile, ThatLacksStepsIsNotGoneOnWith) {
  options_.durable = DurableOptions{.folder = folder_ / "checkpoints", .every = 4};
  Step done = 0;
  options_.stop = [&] { return ++done == 7; };
  (void)train(options_, data_);
  std::string text = read_text_file(options_.event_log);
  text.resize(text.size() / 2);
  write_text_file(options_.event_log, text);
  options_.stop = {};
  options_.durable->resume = true;
  std::string told;
  const TrainResult resumed =
      train(options_, data_, [&](const TrainProgress& now) { told += now.event + "\n"; });
  EXPECT_NE(
      told.find("the event log lacks steps before 7: what is recorded of the run begins there"),
      std::string::npos)
      << told;
  EXPECT_EQ(resumed.first_phase, 0U);
  EXPECT_EQ(sum_costs(resumed.trace), kTinySteps - 7);
  EXPECT_EQ(steps_of<StepEvent>(read()).front(), 7);
}

TEST_F(EventLogFile, ThatCannotBeWrittenEndsNoRun) {
  fs::create_directories(options_.event_log);  // a folder is in the way
  std::vector<std::string> told;
  const TrainResult result = train(options_, data_, [&](const TrainProgress& now) {
    if (!now.event.empty()) told.push_back(now.event);
  });
  EXPECT_EQ(result.trace.steps, kTinySteps);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().find("the event log ends here: " + options_.event_log.string()), 0U)
      << told.front();
}

}  // namespace
}  // namespace frazil
