#include "exec/train/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "exec/train/stored_run.h"
#include "exec/train/train_files.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/write_freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name) const { write_text_file(folder_ / name, "text"); }
  std::string refusal() const {
    try {
      RunFolder(folder_).refuse_run();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  fs::path folder_ = fs::temp_directory_path() / ("frazil-folder-" + std::to_string(getpid()));
};

TEST_F(Folder, BelongsToOneAtATime) {
  RunFolder first(folder_);
  first.take();
  EXPECT_THROW(RunFolder second(folder_), InputError);
}

TEST_F(Folder, IsMadeByWhoeverComesFirst) {
  RunFolder first(folder_);
  RunFolder second(folder_);
  EXPECT_FALSE(fs::exists(folder_)) << "looking makes nothing";
  first.take();
  EXPECT_THROW(second.take(), InputError);
}

TEST_F(Folder, GoesWithWhoeverMadeItAndWroteNothing) {
  { RunFolder(folder_).take(); }
  EXPECT_FALSE(fs::exists(folder_));
  {
    RunFolder folder(folder_);
    folder.take();
    write("inputs/flags.json");
  }
  EXPECT_TRUE(fs::exists(folder_));
  fs::remove_all(folder_ / "inputs");
  { RunFolder(folder_).take(); }
  EXPECT_TRUE(fs::exists(folder_)) << "it was there before";
}

TEST_F(Folder, HoldsARunIfAFileOfOneIsThere) {
  for (const std::string name :
       {"events.jsonl", "trace.jsonl", "weights.safetensors", "inputs/flags.json",
        "phase-0/plan.json", "phase-1/plan.json", "checkpoints/step-000000000004.safetensors"}) {
    SCOPED_TRACE(name);
    fs::remove_all(folder_);
    write("note.txt");
    write("inputs/model.json");
    write("phase-0/note.txt");
    EXPECT_EQ(refusal(), "");
    write(name);
    EXPECT_NE(refusal(), "");
  }
}

TEST_F(Folder, HoldsNoRunBecauseOfFilesOfOtherTrainers) {
  for (const std::string name : {"step-7.ckpt", "best.pt", "step-7.safetensors",
                                 "step-000000000004.safetensors.old", "steps.journal.damaged-1"}) {
    write("checkpoints/" + name);
  }
  EXPECT_EQ(refusal(), "");
}

TEST_F(Folder, IsTheOneThatALinkLeadsTo) {
  write("real/events.jsonl");
  fs::create_symlink("real", folder_ / "link");
  for (const std::string name : {"link", "link/"}) {
    const RunFolder run(folder_ / name);
    EXPECT_EQ(run.path(), fs::canonical(folder_ / "real"));
    EXPECT_TRUE(run.found().has_value());
    EXPECT_THROW(RunFolder(folder_ / "real"), InputError) << "one lock, by either name";
  }
  EXPECT_EQ(RunFolder(folder_ / "real").path(), folder_ / "real") << "as it was named";
}

TEST_F(Folder, IsClearedOfARunAndOfNothingElse) {
  for (const std::string name :
       {"events.jsonl", "trace.jsonl", "weights.safetensors", "weights.safetensors.tmp.12",
        "inputs/flags.json", "inputs/plan.json", "phase-0/plan.json", "phase-1/memory.json",
        "checkpoints/steps.journal", "checkpoints/steps.journal.damaged-0123456789abcdef",
        "checkpoints/step-000000000004.safetensors",
        "checkpoints/step-000000000008.safetensors.damaged-0123456789abcdef",
        "checkpoints/.tmp-step", "checkpoints/run.json", "checkpoints/kernels.json",
        "events.jsonl.damaged-0123456789abcdef", "note.txt", "phase-1/note.txt"}) {
    write(name);
  }
  RunFolder(folder_).clear();
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.is_regular_file()) left.push_back(fs::relative(entry.path(), folder_).string());
  }
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"note.txt", "phase-1/note.txt"}));
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints"));
  EXPECT_FALSE(fs::exists(folder_ / "phase-0"));
  EXPECT_EQ(refusal(), "");
}

TEST_F(Folder, IsClearedBesideCheckpointsOfOtherTrainers) {
  for (const std::string name :
       {"events.jsonl", "checkpoints/steps.journal", "checkpoints/step-7.ckpt",
        "checkpoints/best.pt", "checkpoints/step-000000000004.safetensors.old",
        "events.jsonl.damaged-by-me"}) {
    write(name);
  }
  RunFolder(folder_).clear();
  EXPECT_FALSE(fs::exists(folder_ / "events.jsonl"));
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints/steps.journal"));
  for (const std::string name : {"step-7.ckpt", "best.pt", "step-000000000004.safetensors.old"}) {
    EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / name)) << name;
  }
  EXPECT_TRUE(fs::exists(folder_ / "events.jsonl.damaged-by-me"));
}

TEST_F(Folder, KeepsWhatARunWasBegunWith) {
  StoredRun run;
  run.config = tiny_config();
  run.config.seed = 9;
  run.profile = tiny_profile(run.config);
  run.cluster = tiny_cluster(kAmpleMemory);
  run.plan = make_small_plan(run.profile, {.micro_batches = 2, .cuts = {{4}}, .owned = {2}});
  run.keep_plan = true;
  run.lengths = {18, 24};
  run.asked_steps = 18;
  run.checkpoint_every = 5;
  FreezeTrace masks;
  masks.model_hash = model_hash(run.profile);
  masks.blocks = run.profile.blocks;
  masks.steps = 18;
  masks.events = {{0, MaskEvent{FreezeMask::parse("11111", "masks", 1)}},
                  {4, MaskEvent{FreezeMask::parse("00111", "masks", 1)}}};
  fs::create_directories(folder_);
  write_freeze_trace(masks, (folder_ / "theirs.jsonl").string());
  TraceFreeze trace;
  trace.path = (folder_ / "theirs.jsonl").string();
  trace.steps = 18;
  trace.masks = {{0, FreezeMask::parse("11111", "masks", 1)},
                 {4, FreezeMask::parse("00111", "masks", 1)}};
  run.config.freeze.policy = trace;
  EXPECT_FALSE(read_stored_run(folder_).has_value());
  write_stored_run(run, folder_);
  fs::remove(folder_ / "theirs.jsonl");
  const std::optional<StoredRun> read = read_stored_run(folder_);
  ASSERT_TRUE(read.has_value());
  std::get<TraceFreeze>(run.config.freeze.policy).path = (folder_ / "inputs/masks.jsonl").string();
  EXPECT_EQ(read->config, run.config);
  EXPECT_EQ(read->profile, run.profile);
  EXPECT_EQ(read->cluster, run.cluster);
  EXPECT_EQ(read->plan, run.plan);
  EXPECT_TRUE(read->keep_plan);
  EXPECT_EQ(read->lengths, run.lengths);
  EXPECT_EQ(read->asked_steps, 18);
  EXPECT_EQ(read->checkpoint_every, 5);
  run.plan.reset();
  write_stored_run(run, folder_);
  EXPECT_EQ(read_stored_run(folder_)->plan, std::nullopt);
}

}  // namespace
}  // namespace frazil
