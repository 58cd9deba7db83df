#pragma once
// A small training that keeps checkpoints on a disk in memory, is ended and goes on. Tests compare
// it with one that never ended.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>

#include "exec/checkpoint/durable_run.h"
#include "exec/checkpoint/run_identity.h"
#include "exec/train/trainer.h"
#include "profiles/error.h"
#include "tests/exec/checkpoint/journal_checks.h"
#include "tests/exec/checkpoint/small_states.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/disk/faulty_files.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {

// Three epochs of six steps; blocks freeze at steps 6 and 12, and the planner answers.
class DurableTraining : public testing::Test {
 protected:
  DurableTraining() {
    options_.config = tiny_config();
    options_.profile = tiny_profile(options_.config);
    options_.cluster = tiny_cluster(Bytes{600'000});
    data_ = load_data(options_.config);
    whole_ = train(options_, data_);
    options_.durable = DurableOptions{
        .folder = kFolder, .every = 4, .keep = 2, .resume = false, .journal = {}, .files = {}};
    options_.durable->files = disk_.files();
  }

  // Ends after so many steps, counting from the first of this process.
  TrainResult train_for(Step steps) {
    Step done = 0;
    options_.stop = [&] { return ++done == steps; };
    return train(options_, data_);
  }
  // Ends the training at its `call`th call of the file system.
  void train_until(int call, FaultyFiles& faulty) {
    options_.durable->files = faulty.files();
    faulty.arm(Fault::kCrash, call);
    try {
      (void)train(options_, data_);
    } catch (const Crash&) {
    }
    faulty.disarm();
    disk_.kill();
  }
  TrainResult resume() {
    options_.stop = {};
    options_.durable->resume = true;
    return train(options_, data_);
  }
  std::uint64_t run_hash() const {
    return identify_run(options_.config, model_hash(options_.profile), data_, 18).run_hash;
  }
  // Returns what the journal says, which is whole.
  JournalContents contents() { return contents(journal()); }
  JournalContents contents(const std::string& text) const {
    return read_whole_journal(text, run_hash());
  }
  // Lines that were lost with the power may be missing; none is another.
  void expect_journal(const std::string& whole) { expect_no_other(contents(), contents(whole)); }
  // Makes the disk one that holds these files.
  void put(const std::map<std::string, std::string>& contents) {
    disk_ = DiskModel();
    const FileSystem files = disk_.files();
    for (const auto& [path, bytes] : contents) write_file(files, path, bytes);
  }
  // Resumes and returns what a person is told.
  std::string resume_and_tell() {
    options_.stop = {};
    options_.durable->resume = true;
    std::string told;
    expect_whole(train(options_, data_, [&](const TrainProgress& now) {
      if (now.is_warning) told += now.event + "\n";
    }));
    return told;
  }
  std::string refusal() {
    try {
      (void)resume();
    } catch (const InputError& error) {
      return error.what();
    } catch (const ReplayMismatch& error) {
      return error.what();
    }
    return "";
  }
  std::string journal() { return disk_.bytes(kFolder + "/steps.journal"); }
  void expect_whole(const TrainResult& result) const {
    EXPECT_EQ(result.weight_hash, whole_.weight_hash);
    EXPECT_EQ(result.loss, whole_.loss);
    EXPECT_EQ(result.accuracy, whole_.accuracy);
    const auto last_eval = [](const TrainResult& some) {
      return std::get<EvalEvent>(some.trace.events.back().what);
    };
    EXPECT_EQ(last_eval(result), last_eval(whole_));
  }

  TrainOptions options_;
  Dataset data_;
  TrainResult whole_;  // of a run that never ended, and kept nothing
  DiskModel disk_;
};

}  // namespace frazil
