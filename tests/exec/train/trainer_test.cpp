#include "exec/train/train_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "analysis/html/html_report.h"
#include "planner/bounds/shape.h"
#include "planner/plan/plan_json.h"
#include "planner/prediction/plan_notation.h"
#include "planner/search/advice.h"
#include "planner/search/search.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

constexpr Step kStepsPerEpoch = 6;
// The limit is too small for a replica of the whole model, and enough for half the model, and for
// all of the model once blocks are frozen.
constexpr Bytes kLimit{600'000};

TrainOptions tiny_options() {
  TrainOptions options;
  options.config = tiny_config();
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(kLimit);
  options.command = "frazil train";
  return options;
}

TrainResult run_trainer(const TrainOptions& options) {
  return train(options, load_data(options.config));
}

TEST(Trainer, FreezesByThePolicyAndPlansAnew) {
  const TrainResult result = run_trainer(tiny_options());
  // L_f = ceil(3 (1 - 1/2)) = 2 blocks in the second epoch, ceil(3 (1 - 1/4)) = 3 in the third.
  ASSERT_EQ(result.phases.size(), 3U);
  const std::vector<std::string> masks = {"11111", "00011", "00001"};
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const TrainPhase& phase = result.phases[i];
    EXPECT_EQ(phase.plan.mask.text(), masks[i]);
    EXPECT_EQ(phase.first_step, kStepsPerEpoch * static_cast<Step>(i));
    EXPECT_EQ(phase.steps, kStepsPerEpoch);
    EXPECT_GT(phase.measured_time.count(), 0);
    EXPECT_GT(phase.predicted_step.count(), 0);
    EXPECT_FALSE(phase.predicted.spans.empty());
    EXPECT_FALSE(phase.measured.spans.empty());
    EXPECT_GT(phase.measured_samples_per_second(), 0);
    EXPECT_NEAR(phase.predicted_samples_per_second() *
                    std::chrono::duration<double>(phase.predicted_step).count(),
                8, 1e-6);
  }
  EXPECT_EQ(result.phases[0].plan.pipelines.size(), 1U) << summarize(result.phases[0].plan);
  EXPECT_EQ(parallel_shape(result.phases[0].plan).pipeline_devices, std::vector{2});
  EXPECT_EQ(result.phases[2].plan.pipelines.size(), 2U) << summarize(result.phases[2].plan);
  EXPECT_GE(result.accuracy, 0);
  EXPECT_LE(result.accuracy, 1);
  EXPECT_GT(result.training_time.count(), 0);
}

TEST(Trainer, RecordsMaskPlanAndTransitionBeforeTheirStep) {
  const TrainResult result = run_trainer(tiny_options());
  const FreezeTrace& trace = result.trace;
  EXPECT_EQ(trace.steps, kTinySteps);
  EXPECT_EQ(trace.batch_size, 8);
  EXPECT_EQ(trace.blocks.size(), 5U);
  EXPECT_EQ(trace.provenance.at("command"), "frazil train");
  const std::vector<Step> changes = {0, 6, 12};
  EXPECT_EQ(steps_of<MaskEvent>(trace), changes);
  EXPECT_EQ(steps_of<PlanEvent>(trace), changes);
  EXPECT_EQ(steps_of<TransitionEvent>(trace), changes);
  EXPECT_EQ(steps_of<EvalEvent>(trace), (std::vector<Step>{6, 12, 18}));
  EXPECT_EQ(steps_of<CostEvent>(trace).size(), 3U);
  for (std::size_t i = 1; i < trace.events.size(); ++i) {
    EXPECT_LE(trace.events[i - 1].step, trace.events[i].step);
  }
  std::int64_t steps = 0;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* cost = std::get_if<CostEvent>(&event.what)) {
      EXPECT_EQ(cost->samples, 8 * cost->steps);
      steps += cost->steps;
    }
  }
  EXPECT_EQ(steps, kTinySteps);
  const std::string text = to_jsonl(trace);
  EXPECT_EQ(to_jsonl(parse_freeze_trace(text, "trace")), text);
}

TEST(Trainer, KeepsItsBitsWhetherOrNotItPlansAnew) {
  TrainOptions options = tiny_options();
  const TrainResult elastic = run_trainer(options);
  options.elastic = false;
  const TrainResult kept = run_trainer(options);
  ASSERT_EQ(kept.phases.size(), 3U);
  for (const TrainPhase& phase : kept.phases) {
    EXPECT_EQ(phase.plan.pipelines, kept.phases[0].plan.pipelines);
  }
  EXPECT_NE(elastic.phases[2].plan.pipelines, kept.phases[2].plan.pipelines);
  EXPECT_EQ(elastic.weight_hash, kept.weight_hash);
  EXPECT_EQ(elastic.loss, kept.loss);
  options.config.freeze = {};
  const TrainResult unfrozen = run_trainer(options);
  EXPECT_EQ(unfrozen.phases.size(), 1U);
  EXPECT_NE(unfrozen.weight_hash, kept.weight_hash) << "freezing must matter";
}

TEST(Trainer, BeginsWithThePlanItIsGiven) {
  TrainOptions options = tiny_options();
  const TrainResult chosen = run_trainer(options);
  Plan plan = chosen.phases[0].plan;
  plan.pipelines = {make_pipeline(kSmallLayers, {LayerId{2}}, {DeviceId{1}, DeviceId{0}},
                                  {MicroBatchId{0}, MicroBatchId{1}})};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  options.plan = plan;
  options.cluster = tiny_cluster(kLimit * 2);  // it does not fit into what the planner's best needs
  const TrainResult given = run_trainer(options);
  EXPECT_EQ(given.phases[0].plan, plan);
  EXPECT_EQ(given.weight_hash, chosen.weight_hash);
}

TEST(Trainer, EvaluatesAfterEveryNthEpochAndTheLast) {
  TrainOptions options = tiny_options();
  const TrainResult each = run_trainer(options);
  options.config.evaluation_epochs = 2;
  const TrainResult seldom = run_trainer(options);
  EXPECT_EQ(steps_of<EvalEvent>(seldom.trace), (std::vector<Step>{12, kTinySteps}));
  EXPECT_EQ(seldom.loss, each.loss);
  EXPECT_EQ(seldom.weight_hash, each.weight_hash);
  options.config.evaluation_epochs = 100;
  EXPECT_EQ(steps_of<EvalEvent>(run_trainer(options).trace), (std::vector<Step>{kTinySteps}));
}

TEST(Trainer, EndsAfterTheStepsItIsGiven) {
  TrainOptions options = tiny_options();
  options.max_steps = 8;
  std::vector<Step> told;
  const TrainResult result =
      train(options, load_data(options.config), [&](const TrainProgress& now) {
        EXPECT_EQ(now.steps, 8);
        told.push_back(now.step);
      });
  EXPECT_EQ(told.back(), 8);
  EXPECT_EQ(result.trace.steps, 8);
  ASSERT_EQ(result.phases.size(), 2U);
  EXPECT_EQ(result.phases[1].steps, 2);
  EXPECT_EQ(steps_of<EvalEvent>(result.trace), (std::vector<Step>{6, 8}));
  EXPECT_NE(result.weight_hash, run_trainer(tiny_options()).weight_hash);
}

// 45 samples: the sixth step has 5, a micro-batch of 4 and one of 1.
TEST(Trainer, TakesAShortLastBatch) {
  TrainOptions options = tiny_options();
  options.config.data.train_samples = 45;
  const TrainResult elastic = run_trainer(options);
  EXPECT_EQ(elastic.trace.steps, kTinySteps);
  EXPECT_EQ(elastic.phases[0].steps, 5) << "full batches";
  options.elastic = false;
  EXPECT_EQ(run_trainer(options).weight_hash, elastic.weight_hash);
}

// The trainer says what `frazil plan` says of the same model, cluster and micro-batch.
TEST(Trainer, SaysWhenNoPlanFitsWhatThePlannerSays) {
  TrainOptions options = tiny_options();
  options.cluster = tiny_cluster(Bytes{10'000});
  SearchCase question{options.cluster, {}};
  question.options.batch_size = options.config.batch_size;
  question.options.micro_batch_sizes = {options.config.micro_batch_size};
  question.options.schedules = synchronous_schedules();
  question.options.mask = FreezeMask::all_active(static_cast<int>(options.profile.blocks.size()));
  question.options.clip = options.config.optimizer.clip_norm > 0;
  question.options.joint = question.options.recompute = true;
  const Ranking ranking = search_plans({options.profile, options.cluster}, question.options);
  ASSERT_EQ(ranking.best(), nullptr);
  try {
    (void)run_trainer(options);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InfeasibleError& error) {
    EXPECT_EQ(error.what(), explain_no_plan(options.profile, question, ranking));
    EXPECT_EQ(std::string(error.what()).find("no plan is feasible; the nearest by the memory of "),
              0U);
  }
}

// Parameters, gradients and moments follow from the layers alone; the made-up stashes say nothing.
TEST(Trainer, MeasuresMemoryInTheSecondStepOfEachPhase) {
  const TrainResult result = run_trainer(tiny_options());
  EXPECT_GT(result.process_peak_resident.count, 0);
  for (const TrainPhase& phase : result.phases) {
    ASSERT_TRUE(phase.memory);
    EXPECT_EQ(phase.memory->step, phase.first_step + 1);
    EXPECT_LE(phase.memory->process_peak_resident, result.process_peak_resident);
    ASSERT_EQ(phase.memory->devices.size(), 2U);
    for (const DeviceMemory& device : phase.memory->devices) {
      EXPECT_EQ(device.limit, kLimit);
      for (const MemoryKind kind :
           {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kOptimizer}) {
        const auto k = static_cast<std::size_t>(kind);
        EXPECT_EQ(device.measured.kinds[k], device.predicted.kinds[k]) << memory_kind_name(kind);
      }
      EXPECT_FALSE(device.predicted.curve.empty());
      EXPECT_FALSE(device.measured.curve.empty());
      // The allocator also hands out what kernels work with, and gradients on their way.
      EXPECT_GT(device.allocator_peak, device.measured.kinds[0] + device.measured.kinds[2]);
    }
  }
}

TEST(Trainer, MeasuresNoMemoryInAPhaseOfOneStep) {
  TrainOptions options = tiny_options();
  options.max_steps = 7;
  const TrainResult result = run_trainer(options);
  ASSERT_EQ(result.phases.size(), 2U);
  EXPECT_TRUE(result.phases[0].memory);
  EXPECT_FALSE(result.phases[1].memory);
}

TEST(Trainer, RefusesAGivenPlanThatDoesNotFit) {
  TrainOptions options = tiny_options();
  options.plan = run_trainer(options).phases[2].plan;  // replicas of a model that is mostly frozen
  try {
    (void)run_trainer(options);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InfeasibleError& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(sentence.find("the plan does not fit: device0 needs "), 0U) << sentence;
    EXPECT_NE(sentence.find(" of memory and has 585.94 KiB, at its peak for parameters "),
              std::string::npos)
        << sentence;
  }
}

using Texts = std::map<std::string, std::string>;  // by path

Texts texts_under(const std::filesystem::path& folder) {
  Texts texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) texts[entry.path().string()] = read_text_file(entry.path());
  }
  return texts;
}

class TrainResultFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("frazil-train-" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(TrainResultFolder, IsReadByTheReport) {
  const TrainResult result = run_trainer(tiny_options());
  write_result(result, folder_);
  const ReportRun read = read_run(folder_.string());
  EXPECT_EQ(read.trace, result.trace);
  ASSERT_EQ(read.phases.size(), result.phases.size());
  for (std::size_t i = 0; i < result.phases.size(); ++i) {
    const std::filesystem::path place = folder_ / ("phase-" + std::to_string(i));
    EXPECT_EQ(read_plan(place / "plan.json"), result.phases[i].plan);
    EXPECT_TRUE(std::filesystem::exists(place / "trace.json"));
    EXPECT_EQ(read.phases[i].memory, result.phases[i].memory);
    EXPECT_EQ(read.phases[i].predicted.spans.size(), result.phases[i].predicted.spans.size());
    EXPECT_EQ(read.phases[i].measured.spans.size(), result.phases[i].measured.spans.size());
  }
}

// A run of three phases with memory is written, then one of two phases, the second too short for
// memory.
TEST_F(TrainResultFolder, LosesWhatALongerRunHasLeft) {
  TrainOptions options = tiny_options();
  write_result(run_trainer(options), folder_);
  const std::filesystem::path note = folder_ / "phase-2/note.txt";
  write_text_file(note, "mine");
  options.max_steps = 7;
  const TrainResult shorter = run_trainer(options);
  write_result(shorter, folder_);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "phase-0/memory.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "phase-1/memory.json"));
  EXPECT_EQ(texts_under(folder_ / "phase-2"), (Texts{{note.string(), "mine"}}));
  EXPECT_EQ(read_run(folder_.string()).trace, shorter.trace);
  std::filesystem::remove(note);
  write_result(shorter, folder_);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "phase-2"));
}

// Whoever looks meanwhile, or comes after a process that was killed, finds all files.
TEST_F(TrainResultFolder, HasAllFilesOfAPhaseWhileThatIsWrittenAgain) {
  const TrainResult result = run_trainer(tiny_options());
  write_phase(result.phases[0], 0, folder_);
  std::atomic<bool> is_done = false;
  int looks = 0;
  int missing = 0;
  std::thread looking([&] {
    for (; !is_done; ++looks) {
      for (const char* const name : {"plan.json", "predicted.csv", "measured.csv"}) {
        missing += std::filesystem::exists(folder_ / "phase-0" / name) ? 0 : 1;
      }
    }
  });
  for (int i = 0; i < 40; ++i) write_phase(result.phases[0], 0, folder_);
  is_done = true;
  looking.join();
  EXPECT_GT(looks, 40);
  EXPECT_EQ(missing, 0) << "in " << looks << " looks";
}

TEST_F(TrainResultFolder, KeepsOthersFilesInThePhaseThatIsWrittenAgain) {
  const TrainResult result = run_trainer(tiny_options());
  write_phase(result.phases[0], 0, folder_);
  write_text_file(folder_ / "phase-0/note.txt", "mine");
  Texts before = texts_under(folder_);
  TrainPhase shorter = result.phases[0];
  shorter.memory.reset();
  write_phase(shorter, 0, folder_);
  before.erase((folder_ / "phase-0/memory.json").string());
  EXPECT_EQ(texts_under(folder_), before);
  std::filesystem::remove(folder_ / "phase-0/note.txt");
  before.erase((folder_ / "phase-0/note.txt").string());
  write_phase(shorter, 0, folder_);
  EXPECT_EQ(texts_under(folder_), before);
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".tmp-phase-0"));
}

TEST_F(TrainResultFolder, StaysAsItIsWhereAFolderIsInTheWay) {
  TrainOptions options = tiny_options();
  const TrainResult longer = run_trainer(options);
  options.max_steps = 7;
  const TrainResult shorter = run_trainer(options);
  // The names are of a file to be written, one to be removed, and one of a phase that is no more.
  for (const std::string name : {"trace.jsonl", "phase-1/memory.json", "phase-2/plan.json"}) {
    SCOPED_TRACE(name);
    std::filesystem::remove_all(folder_);
    write_result(longer, folder_);
    std::filesystem::remove(folder_ / name);
    write_text_file(folder_ / name / "note.txt", "mine");
    const Texts before = texts_under(folder_);
    try {
      write_result(shorter, folder_);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find((folder_ / name).string() + ": found a folder"), 0U)
          << error.what();
    }
    EXPECT_EQ(texts_under(folder_), before);
  }
}

}  // namespace
}  // namespace frazil
