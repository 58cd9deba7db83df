#include "exec/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <random>

#include "profiles/error.h"
#include "tests/exec/checkpoint/small_states.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/disk/faulty_files.h"

namespace frazil {
namespace {

std::string path_of(Step step) {
  const std::string digits = std::to_string(step);
  return kFolder + "/step-" + std::string(12 - digits.size(), '0') + digits + ".safetensors";
}

class Checkpoints : public testing::Test {
 protected:
  CheckpointFolder open(const FileSystem& files, int keep = 2) const {
    return {files, kFolder, model_, kRun, keep};
  }
  // Saves the state of a step, which is made of the step as a seed.
  void save(CheckpointFolder& folder, Step step) const {
    folder.save(position_at(step), pointers(states(step)));
  }
  std::vector<LayerState> states(Step step) const {
    return random_states(model_, static_cast<std::uint64_t>(step));
  }
  // Returns the step of what is loaded, after a look at its bits; -1: none.
  Step load(const FileSystem& files, const std::map<Step, std::uint64_t>& weights = {}) const {
    const auto found = open(files).load(weights);
    if (!found) return -1;
    const Step step = found->checkpoint.position.step;
    EXPECT_EQ(found->checkpoint.position, position_at(step));
    EXPECT_EQ(hash_of(found->checkpoint.layers), hash_of(states(step)));
    return step;
  }
  static void expect_no_temporary(const DiskModel& disk) {
    for (const auto& [path, bytes] : disk.contents()) {
      EXPECT_EQ(path.find(".tmp"), std::string::npos) << path;
    }
  }

  ModelSpec model_ = parameter_model();
  DiskModel disk_;
  FileSystem files_ = disk_.files();
};

TEST_F(Checkpoints, AreKeptUpToTheNumberAskedFor) {
  CheckpointFolder folder = open(files_, 3);
  EXPECT_FALSE(folder.load());
  for (const Step step : {5, 10, 15, 20, 25}) save(folder, step);
  EXPECT_EQ(folder.steps(), (std::vector<Step>{15, 20, 25}));
  EXPECT_EQ(load(files_), 25);
  const std::uint64_t other = 1;
  EXPECT_EQ(load(files_, {{25, other}}), 20);
  EXPECT_EQ(load(files_, {{25, hash_weights(pointers(states(25)))}}), 25);
  expect_no_temporary(disk_);
}

TEST_F(Checkpoints, ABrokenNewestFallsBackToTheOneBeforeAndSaysSo) {
  CheckpointFolder folder = open(files_);
  for (const Step step : {5, 10}) save(folder, step);
  disk_.bytes(path_of(10)).back() ^= 1;
  const auto before = disk_.contents();
  const auto found = open(files_).load();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->checkpoint.position.step, 5);
  EXPECT_EQ(found->passed_over,
            (std::vector<std::string>{
                path_of(10) + ": found the tensor second_moment.table.weight@3 whose hash does not "
                              "hold, expected a whole checkpoint of this run"}));
  EXPECT_EQ(disk_.contents(), before);
}

TEST_F(Checkpoints, NoneThatHoldsIsOneSentence) {
  CheckpointFolder folder = open(files_);
  for (const Step step : {5, 10}) save(folder, step);
  for (const Step step : {5, 10}) disk_.bytes(path_of(step)).resize(100);
  const auto before = disk_.contents();
  try {
    (void)open(files_).load();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_NE(error.found().find("no checkpoint that holds; the newest: " + path_of(10)),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(disk_.contents(), before);
}

TEST_F(Checkpoints, OneUnderTheNameOfAnotherStepIsPassedOver) {
  CheckpointFolder folder = open(files_);
  for (const Step step : {5, 10}) save(folder, step);
  disk_.bytes(path_of(10)) = disk_.bytes(path_of(5));
  EXPECT_EQ(load(files_), 5);
}

// The bits of a kept checkpoint rot: it does not count, so one more that holds is kept.
TEST_F(Checkpoints, BrokenOnesDoNotCountAmongThoseKept) {
  {
    CheckpointFolder folder = open(files_);
    for (const Step step : {5, 10}) save(folder, step);
  }
  disk_.bytes(path_of(10)).back() ^= 1;
  CheckpointFolder folder = open(files_);
  save(folder, 15);
  EXPECT_EQ(folder.steps(), (std::vector<Step>{5, 10, 15}));
  disk_.bytes(path_of(15)).back() ^= 1;
  EXPECT_EQ(load(files_), 5);
}

TEST_F(Checkpoints, OfLaterStepsAreLeftToTheRunThatComesToThem) {
  CheckpointFolder folder = open(files_);
  for (const Step step : {5, 10, 15}) save(folder, step);
  save(folder, 6);
  save(folder, 7);
  EXPECT_EQ(folder.steps(), (std::vector<Step>{6, 7, 10, 15}));
}

// A process was killed between a save and the removal of older checkpoints, so that there are three
// where two are kept.
TEST_F(Checkpoints, ThatAKilledProcessDidNotRemoveGoWhenTheRunGoesOn) {
  {
    CheckpointFolder folder = open(files_, 3);
    for (const Step step : {5, 10, 15}) save(folder, step);
  }
  CheckpointFolder folder = open(files_);
  EXPECT_TRUE(folder.load());
  EXPECT_EQ(folder.steps(), (std::vector<Step>{5, 10, 15})) << "reading removes nothing";
  folder.prune(10);
  EXPECT_EQ(folder.steps(), (std::vector<Step>{5, 10, 15})) << "later ones do not count";
  folder.prune(15);
  EXPECT_EQ(folder.steps(), (std::vector<Step>{10, 15}));
  folder.prune(15);
  EXPECT_EQ(folder.steps(), (std::vector<Step>{10, 15}));
}

// One leftover is of a save that failed on a disk that would not remove it either, one is of a
// process that was killed.
TEST_F(Checkpoints, LeftoversOfAnUnfinishedSaveGo) {
  const auto leave = [&](Step step) {
    File file(files_, kFolder + "/.tmp-" + path_of(step).substr(kFolder.size() + 1),
              O_WRONLY | O_CREAT);
    file.write("half");
  };
  CheckpointFolder folder = open(files_);
  leave(5);
  save(folder, 5);
  EXPECT_EQ(load(files_), 5);
  leave(10);
  (void)open(files_);
  expect_no_temporary(disk_);
}

// Later checkpoints than the one that is gone on from do not hold; the run comes to their steps
// again, or passes between them.
TEST_F(Checkpoints, DamagedOnesAreKeptAsideByTheFirstSave) {
  {
    CheckpointFolder folder = open(files_, 3);
    for (const Step step : {5, 10, 15}) save(folder, step);
  }
  std::vector<std::string> damaged;
  for (const Step step : {10, 15}) {
    disk_.bytes(path_of(step)).back() ^= 1;
    damaged.push_back(disk_.bytes(path_of(step)));
  }
  const auto before = disk_.contents();
  CheckpointFolder folder = open(files_);
  EXPECT_EQ(folder.load()->checkpoint.position.step, 5);
  EXPECT_EQ(disk_.contents(), before);
  for (const Step step : {10, 12, 14, 18}) save(folder, step);
  EXPECT_EQ(folder.steps(), (std::vector<Step>{14, 18}));
  std::vector<std::string> aside;
  for (const auto& [path, bytes] : disk_.contents()) {
    if (path.find(".safetensors.damaged-") != std::string::npos) aside.push_back(bytes);
  }
  EXPECT_EQ(aside, damaged);
}

TEST_F(Checkpoints, OtherFilesAreNotTouched) {
  const FileSystem files = disk_.files();
  for (const std::string name :
       {"note.txt", "step-1.safetensors", "step-00000000000x.safetensors"}) {
    File file(files, kFolder + "/" + name, O_WRONLY | O_CREAT);
  }
  CheckpointFolder folder = open(files_);
  for (const Step step : {5, 10, 15}) save(folder, step);
  EXPECT_EQ(disk_.contents().size(), 5U);
}

// A third save comes beside two checkpoints, with every call of the file system crashed or failed
// once.
TEST_F(Checkpoints, EveryCallOfASaveMayFail) {
  model_ = parameter_model(6000);  // more than one write
  for (const Fault fault : {Fault::kCrash, Fault::kNoSpace, Fault::kInputOutput}) {
    int struck = 0;
    for (bool strikes = true; strikes; ++struck) {
      SCOPED_TRACE(std::to_string(static_cast<int>(fault)) + " at call " + std::to_string(struck));
      DiskModel disk;
      FaultyFiles faulty(disk.files());
      const FileSystem files = faulty.files();
      CheckpointFolder folder = open(files);
      for (const Step step : {5, 10}) save(folder, step);
      faulty.arm(fault, struck);
      bool saved = false;
      bool crashed = false;
      try {
        save(folder, 15);
        saved = true;
      } catch (const Crash&) {
        crashed = true;
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("the error \""), std::string::npos);
      }
      strikes = faulty.has_struck();
      faulty.disarm();
      if (!crashed) {
        expect_no_temporary(disk);
        // The last call of a save comes after the checkpoint has its name.
        const Step newest = folder.load()->checkpoint.position.step;
        EXPECT_TRUE(newest == 15 || newest == 10) << newest;
        EXPECT_EQ(load(files), newest);
        // The process goes on, and so do its checkpoints.
        save(folder, 20);
        EXPECT_EQ(load(files), 20);
      } else {
        disk.kill();
        const Step step = load(files);
        EXPECT_TRUE(step == 15 || step == 10) << step;
        EXPECT_FALSE(saved && step != 15);
        expect_no_temporary(disk);
      }
      ASSERT_LT(struck, 200);
    }
    EXPECT_GT(struck, 12) << "calls of a save";
  }
}

// A load beside a failing disk gives a good checkpoint or a sentence, and changes nothing.
TEST_F(Checkpoints, EveryCallOfALoadMayFail) {
  for (const Fault fault : {Fault::kCrash, Fault::kInputOutput}) {
    bool strikes = true;
    for (int call = 0; strikes; ++call) {
      SCOPED_TRACE(call);
      DiskModel disk;
      FaultyFiles faulty(disk.files());
      const FileSystem files = faulty.files();
      {
        CheckpointFolder folder = open(files);
        for (const Step step : {5, 10}) save(folder, step);
      }
      const auto before = disk.contents();
      faulty.arm(fault, call);
      try {
        const Step step = load(files);
        EXPECT_TRUE(step == 5 || step == 10);
      } catch (const Crash&) {
      } catch (const InputError&) {
      }
      strikes = faulty.has_struck();
      faulty.disarm();
      disk.kill();
      EXPECT_EQ(disk.contents(), before);
      EXPECT_EQ(load(files), 10);
      ASSERT_LT(call, 200);
    }
  }
}

// Power ends at random calls; what was not synced is there or not, in part and in any order.
TEST_F(Checkpoints, SurviveLossesOfPower) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", trial " + std::to_string(trial));
    DiskModel disk;
    FaultyFiles faulty(disk.files());
    const FileSystem files = faulty.files();
    Step durable = -1;
    Step step = 0;
    for (int life = 0; life < 3; ++life) {
      faulty.arm(Fault::kCrash, static_cast<int>(random() % 70));
      try {
        CheckpointFolder folder = open(files);
        while (true) {
          step += 5;
          save(folder, step);
          durable = step;
        }
      } catch (const Crash&) {
      }
      faulty.disarm();
      disk.lose_power(random);
      const Step loaded = load(files);
      ASSERT_GE(loaded, durable);
      ASSERT_LE(loaded, step);
      expect_no_temporary(disk);
      step = std::max(loaded, Step{0});
      durable = loaded;
    }
  }
}

}  // namespace
}  // namespace frazil
