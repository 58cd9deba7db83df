// Runs end and go on, under the same and other plans, on the same and other devices.

#include "exec/checkpoint/durable_run.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/plan/plan.h"
#include "profiles/error.h"
#include "tests/exec/checkpoint/durable_training.h"
#include "tests/exec/checkpoint/small_states.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/disk/faulty_files.h"

namespace frazil {
namespace {

struct Shape {
  std::string name;
  PlanShape plan;
  int devices;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{
      {"one device", {}, 1},
      {"two stages", {.cuts = {{4}}}, 2},
      {"cut elsewhere, gpipe", {.schedule = ScheduleKind::kGpipe, .cuts = {{1}}}, 2},
      {"four stages and an idle device", {.cuts = {{2, 4, 6}}}, 5},
      {"two replicas", {.cuts = {{}, {}}, .owned = {3, 3}}, 2},
      {"unequal replicas", {.cuts = {{5}, {}}, .owned = {4, 2}}, 3}};
  return all;
}

void take_steps(Run& run, Step first, Step end) {
  for (Step step = first; step < end; ++step) run.step(step, 1e-2, small_micro_batches(step, 6));
}

std::unique_ptr<Run> make_run(const Shape& shape, const OptimizerConfig& optimizer) {
  return std::make_unique<Run>(make_vit(small_config()), optimizer, 7, shape.devices);
}

void put_in_force(Run& run, const Shape& shape, const std::string& mask) {
  PlanShape plan = shape.plan;
  plan.mask = mask;
  run.transition_to(make_small_plan(run.structure(), plan));
}

TEST(SavedRun, GoesOnUnderAnyPlanWithTheBitsOfOneThatNeverEnded) {
  OptimizerConfig adamw;
  adamw.clip_norm = 1;
  OptimizerConfig sgd;
  sgd.kind = OptimizerConfig::Kind::kSgd;
  for (const OptimizerConfig& optimizer : {adamw, sgd}) {
    for (const std::string mask : {"11111", "00111"}) {
      const auto whole = make_run(shapes()[0], optimizer);
      put_in_force(*whole, shapes()[0], mask);
      take_steps(*whole, 0, 5);
      for (std::size_t from = 0; from < shapes().size(); ++from) {
        const std::size_t to = (from + 1) % shapes().size();
        SCOPED_TRACE(shapes()[from].name + " to " + shapes()[to].name + ", mask " + mask);
        DiskModel disk;
        const FileSystem files = disk.files();
        const ModelSpec model = make_vit(small_config());
        CheckpointFolder folder(files, kFolder, model, kRun);
        std::uint64_t hash = 0;
        {
          const auto begun = make_run(shapes()[from], optimizer);
          put_in_force(*begun, shapes()[from], mask);
          take_steps(*begun, 0, 3);
          const auto layers = static_cast<int>(model.layers.size());
          folder.save({.step = 3, .steps = 5, .mask = begun->plan().mask},
                      first_holders(begun->pool().states(), layers));
          hash = begun->weight_hash();
        }
        const auto resumed = make_run(shapes()[to], optimizer);
        Checkpoint checkpoint = folder.load()->checkpoint;
        resumed->restore(std::move(checkpoint.layers));
        EXPECT_EQ(checkpoint.position.step, 3);
        EXPECT_EQ(resumed->weight_hash(), hash);
        put_in_force(*resumed, shapes()[to], mask);
        take_steps(*resumed, checkpoint.position.step, 5);
        EXPECT_EQ(resumed->weight_hash(), whole->weight_hash());
      }
    }
  }
}

TEST_F(DurableTraining, GivesTheBitsOfOneThatKeepsNothing) {
  expect_whole(train(options_, data_));
  EXPECT_EQ(journal().size(), 64U * (19 + 1 + 5)) << "kernels, and weights of 5 checkpoints";
}

TEST_F(DurableTraining, StoppedAtEveryStepGoesOnToTheSameBits) {
  for (Step step = 1; step < 18; ++step) {
    SCOPED_TRACE(step);
    disk_ = DiskModel();
    options_.durable->resume = false;
    const TrainResult stopped = train_for(step);
    EXPECT_EQ(stopped.stopped_at, step);
    const TrainResult result = resume();
    EXPECT_EQ(result.first_step, step);
    EXPECT_EQ(result.trace.provenance.at("resumed_from_step"), std::to_string(step));
    expect_whole(result);
  }
}

TEST_F(DurableTraining, GoesOnUnderAnotherPlanOnOtherDevices) {
  const std::vector<Shape> others{
      {"cut elsewhere, devices in turn", {.micro_batches = 2, .cuts = {{2}}, .owned = {2}}, 2},
      {"one device", {.micro_batches = 2, .cuts = {{}}, .owned = {2}}, 1},
      {"two replicas", {.micro_batches = 2, .cuts = {{}, {}}, .owned = {1, 1}}, 2},
      {"four stages", {.micro_batches = 2, .cuts = {{1, 3, 6}}, .owned = {2}}, 4}};
  const TrainOptions begun = options_;
  for (const Shape& other : others) {
    for (const Step step : {3, 7, 13}) {
      SCOPED_TRACE(other.name + " after " + std::to_string(step));
      options_ = begun;
      disk_ = DiskModel();
      (void)train_for(step);
      options_.cluster =
          make_uniform_cluster(other.devices, Bytes{1 << 24},
                               {std::chrono::microseconds(5), BytesPerSecond{1'000'000'000}});
      options_.plan = make_small_plan(options_.profile, other.plan);
      options_.plan->batch_size = 8;
      options_.plan->micro_batch_size = 4;
      options_.elastic = step != 7;
      const TrainResult result = resume();
      EXPECT_EQ(result.phases[0].plan.pipelines, options_.plan->pipelines);
      expect_whole(result);
    }
  }
}

TEST_F(DurableTraining, EndedAtAnyCallOfTheFileSystemLosesNoStepAndNoBit) {
  const std::string whole = [&] {
    (void)train(options_, data_);
    return journal();
  }();
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  options_.durable->resume = true;
  for (int trial = 0; trial < 12; ++trial) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", trial " + std::to_string(trial));
    disk_ = DiskModel();
    FaultyFiles faulty(disk_.files());
    for (int life = 0; life < 3; ++life) {
      train_until(static_cast<int>(random() % 90), faulty);
      if (trial % 2 == 1) disk_.lose_power(random);
    }
    expect_whole(resume());
    EXPECT_TRUE(trial % 2 == 1 || journal() == whole) << "no byte is lost but with the power";
    expect_journal(whole);
    for (const auto& [path, bytes] : disk_.contents()) {
      EXPECT_EQ(path.find(".tmp"), std::string::npos) << path;
    }
  }
}

// The journal is sealed as it should be, and says of step 5 something else than comes out.
TEST_F(DurableTraining, AStepDoneAgainWithAnotherLossOrMaskStopsTheRun) {
  (void)train_for(5);
  const std::string path = kFolder + "/steps.journal";
  const RunIdentity identity =
      identify_run(options_.config, model_hash(options_.profile), data_, 18);
  const FileSystem files = disk_.files();
  (void)resume();
  const std::vector<JournalRecord> records =
      StepJournal(files, path, identity.run_hash).recovered();
  disk_.kill();
  // Goes back to the checkpoint of step 5, with all that the journal says.
  const auto resume_with = [&](const JournalRecord& fifth) {
    (void)files.unlink(path);
    for (const Step step : {8, 12, 16, 18}) {
      const std::string digits = std::to_string(step);
      (void)files.unlink(kFolder + "/step-" + std::string(12 - digits.size(), '0') + digits +
                         ".safetensors");
    }
    {
      StepJournal journal(files, path, identity.run_hash);
      for (const JournalRecord& record : records) {
        journal.append(record.step == 5 ? fifth : record);
      }
    }
    try {
      (void)resume();
    } catch (const ReplayMismatch& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  JournalRecord other = records[5];
  other.loss_bits ^= 1;
  const std::string loss = resume_with(other);
  EXPECT_EQ(loss.find("step 5, done again, gave the loss "), 0U) << loss;
  EXPECT_NE(loss.find(" where the journal recorded "), std::string::npos) << loss;
  other = records[5];
  other.mask_hash ^= 1;
  EXPECT_EQ(resume_with(other),
            "step 5, done again, has the mask 11111 where the journal recorded another: the run is "
            "not continued");
  EXPECT_EQ(resume_with(records[5]), "");
}

// A run that a crash ended has its newest checkpoint and steps behind it.
TEST_F(DurableTraining, OutlivesAnyFlippedBitOfItsJournal) {
  FaultyFiles faulty(disk_.files());
  options_.durable->files = faulty.files();
  faulty.arm(Fault::kCrash, "write " + kFolder + "/steps.journal", 13);
  EXPECT_THROW((void)train(options_, data_), Crash);
  disk_.kill();
  options_.durable->files = disk_.files();
  const auto before = disk_.contents();
  const std::string whole = before.at(kFolder + "/steps.journal");
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 40; ++trial) {
    const std::size_t bit = random() % (8 * whole.size());
    SCOPED_TRACE("seed " + std::to_string(seed) + ", bit " + std::to_string(bit));
    std::string broken = whole;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << bit % 8));
    put(before);
    disk_.bytes(kFolder + "/steps.journal") = broken;
    options_.durable->files = disk_.files();
    const std::string told = resume_and_tell();
    const bool is_kept = told.find("the journal was damaged and is kept as") != std::string::npos;
    bool is_there = false;
    for (const auto& [path, bytes] : disk_.contents()) is_there = is_there || bytes == broken;
    EXPECT_EQ(is_kept, is_there) << told;
    EXPECT_EQ(contents().steps, 18);
  }
}

TEST_F(DurableTraining, GoesOnFromItsCheckpointWithoutAJournal) {
  (void)train_for(9);
  const auto before = disk_.contents();
  for (const std::string journal : {"", "none", "a shopping list\n"}) {
    SCOPED_TRACE(journal);
    put(before);
    options_.durable->files = disk_.files();
    const FileSystem files = disk_.files();
    if (journal == "none") {
      (void)files.unlink(kFolder + "/steps.journal");
    } else {
      disk_.bytes(kFolder + "/steps.journal") = journal;
    }
    EXPECT_NE(resume_and_tell().find("the journal has no records of the steps from 0 up to the "
                                     "checkpoint of step 9, which holds without them"),
              std::string::npos);
    EXPECT_EQ(contents().records.size(), 9U);
    EXPECT_TRUE(contents().weights.contains(9));
  }
}

TEST_F(DurableTraining, PassesOverACheckpointOfOtherWeightsThanTheJournalRecorded) {
  (void)train_for(9);
  JournalContents other = contents();
  other.weights.at(9) ^= 1;
  disk_.bytes(kFolder + "/steps.journal") = journal_text(other, run_hash());
  EXPECT_NE(resume_and_tell().find("step-000000000009.safetensors: found weights with the hash "),
            std::string::npos);
}

TEST_F(DurableTraining, BelongsToOneProcessAtATime) {
  (void)train_for(5);
  options_.durable->resume = true;
  const ModelSpec model = make_model(options_.config.model);
  const DurableRun run(*options_.durable, model,
                       identify_run(options_.config, model_hash(options_.profile), data_, 18));
  try {
    (void)resume();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "a run that another process is busy with");
  }
}

TEST_F(DurableTraining, OfOtherSamplesIsAnotherRun) {
  const RunIdentity same = identify_run(options_.config, "a", data_, 18);
  EXPECT_EQ(identify_run(options_.config, "a", load_data(options_.config), 18), same);
  EXPECT_NE(identify_run(options_.config, "a", data_, 19), same);
  EXPECT_NE(identify_run(options_.config, "b", data_, 18), same);
  RunConfig narrow = options_.config;
  narrow.precision = Precision::kBf16;
  EXPECT_NE(identify_run(narrow, "a", data_, 18), same);
  EXPECT_EQ(identify_run(narrow, "a", data_, 18).keys.at("precision"), "bf16");
  data_.train.whole().inputs.at(0).view(-1)[7] += 1;
  EXPECT_NE(identify_run(options_.config, "a", data_, 18), same);
}

// Two of the schedules keep the key that they had when a boolean named them, so that their runs can
// be continued.
TEST_F(DurableTraining, WithAnotherOptimizerIsAnotherRun) {
  RunConfig config = options_.config;
  const auto keys = [&] { return identify_run(config, "a", data_, 18).keys; };
  config.optimizer.schedule = RateSchedule::kCosine;
  EXPECT_EQ(keys().at("optimizer.cosine"), "true");
  EXPECT_FALSE(keys().contains("optimizer.schedule"));
  config.optimizer.schedule = RateSchedule::kConstant;
  EXPECT_EQ(keys().at("optimizer.cosine"), "false");
  EXPECT_FALSE(keys().contains("optimizer.schedule"));
  config.optimizer.schedule = RateSchedule::kLinear;
  EXPECT_EQ(keys().at("optimizer.schedule"), "linear");
  EXPECT_FALSE(keys().contains("optimizer.cosine"));
  config.optimizer.groups = {{"*.bias", 0, 1}};
  EXPECT_EQ(keys().at("optimizer.groups.0.match"), "*.bias");
}

TEST_F(DurableTraining, WithWeightVersionsIsRefused) {
  options_.plan = whole_.phases[0].plan;
  options_.plan->versions = WeightVersions::kStash;
  EXPECT_THROW((void)train(options_, data_), InfeasibleError);
}

TEST_F(DurableTraining, RefusesAFolderOfAnotherRunOrWithoutBeingAskedToResume) {
  (void)train_for(7);
  const auto before = disk_.contents();
  EXPECT_THROW((void)train(options_, data_), InputError);
  const TrainOptions same = options_;
  options_.config.seed = 2;
  EXPECT_THROW((void)resume(), InputError);
  options_ = same;
  options_.config.optimizer.learning_rate = 0.5;
  EXPECT_THROW((void)resume(), InputError);
  options_ = same;
  options_.max_steps = 10;  // another course of the learning rate
  EXPECT_THROW((void)resume(), InputError);
  options_ = same;
  EXPECT_EQ(disk_.contents(), before);
  options_.config.deadline_seconds = 60;
  expect_whole(resume());
}

TEST_F(DurableTraining, GoesOnWithoutACheckpointThatCouldNotBeWritten) {
  FaultyFiles faulty(disk_.files());
  options_.durable->files = faulty.files();
  options_.durable->journal.time = std::chrono::hours(1);
  std::vector<std::string> told;
  const auto listen = [&](const TrainProgress& now) {
    if (now.step == 3 && now.event.empty()) {
      faulty.arm(Fault::kNoSpace, "open /run/.tmp-step-000000000004.safetensors", 0);
    }
    if (now.event.find("no checkpoint") == 0) told.push_back(now.event);
  };
  expect_whole(train(options_, data_, listen));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("No space left on device"), std::string::npos) << told[0];
}

TEST_F(DurableTraining, FallsBackOverABrokenCheckpointAndSaysSo) {
  (void)train_for(9);
  std::string newest;
  for (const auto& [path, bytes] : disk_.contents()) {
    if (path.find("step-") != std::string::npos) newest = path;
  }
  disk_.bytes(newest).back() ^= 1;
  options_.durable->resume = true;
  std::string told;
  options_.stop = {};
  const TrainResult result =
      train(options_, data_, [&](const TrainProgress& now) { told += now.event + "\n"; });
  EXPECT_EQ(result.first_step, 8);
  EXPECT_NE(told.find(newest + ": found"), std::string::npos) << told;
  EXPECT_NE(told.find("from the checkpoint of step 8, doing 1 steps again"), std::string::npos);
  expect_whole(result);
}

}  // namespace
}  // namespace frazil
