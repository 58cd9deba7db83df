// Runs go on with the kernels that they were computed with, with others, and with those that no one
// recorded.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "exec/checkpoint/read_journal.h"
#include "exec/disk/hashes.h"
#include "tests/exec/checkpoint/durable_training.h"

namespace frazil {
namespace {

class OtherKernels : public DurableTraining {};

KernelFacts some_kernels() {
  return {"Some 9000", "AuthenticSome", "avx avx2 fma", "AVX2", "AVX2", "2.11.0"};
}

TEST_F(OtherKernels, AreRefusedAndBothAreNamed) {
  options_.durable->kernels = some_kernels();
  (void)train_for(9);
  const auto before = disk_.contents();
  for (std::string KernelFacts::*fact :
       {&KernelFacts::aten, &KernelFacts::mkl, &KernelFacts::vendor, &KernelFacts::torch}) {
    options_.durable->kernels = some_kernels();
    *options_.durable->kernels.*fact = "other";
    const std::string said = refusal();
    EXPECT_NE(said.find("found a run computed by " + describe(some_kernels()) + ", expected " +
                        describe(*options_.durable->kernels) +
                        ", as this process has, or "
                        "--accept-other-kernels"),
              std::string::npos)
        << said;
    EXPECT_EQ(disk_.contents(), before);
  }
}

TEST_F(OtherKernels, ThatAreAcceptedLetARunForgetTheStepsBehindItsCheckpoint) {
  options_.durable->kernels = some_kernels();
  (void)train_for(9);
  // Steps 9 to 12 are recorded with losses that do not come again.
  JournalContents there = contents();
  for (Step step = 9; step < 13; ++step) there.records.push_back({step, 7, 7});
  there.steps = 13;
  disk_.bytes(kFolder + "/steps.journal") = journal_text(there, run_hash());
  options_.durable->kernels->aten = "DEFAULT";
  EXPECT_NE(refusal(), "");
  options_.durable->accept_other_kernels = true;
  EXPECT_NE(resume_and_tell().find("bits differ from step 9 on: DEFAULT of ATen"),
            std::string::npos);
  const JournalContents now = contents();
  ASSERT_EQ(now.kernels.size(), 2U);
  EXPECT_EQ(now.kernels[1].kind, JournalKind::kOtherKernels);
  EXPECT_EQ(now.kernels[1].step, 9);
  EXPECT_EQ(now.steps, 18);
  const TrainResult again = resume();
  EXPECT_NE(again.trace.provenance.at("other_bits").find("before AVX2 of ATen"), std::string::npos);
}

TEST_F(OtherKernels, OfTheSameBitsOnAnotherProcessorAreToldAndStepsAreChecked) {
  options_.durable->kernels = some_kernels();
  (void)train_for(9);
  const auto before = disk_.contents();
  options_.durable->kernels->processor = "Some 9001";
  EXPECT_NE(resume_and_tell().find("the same kernels on another processor, Some 9001, before "
                                   "Some 9000"),
            std::string::npos);
  put(before);
  options_.durable->files = disk_.files();
  JournalContents there = contents();
  there.records.push_back({9, 7, hash_text("11111")});
  there.steps = 10;
  disk_.bytes(kFolder + "/steps.journal") = journal_text(there, run_hash());
  EXPECT_NE(refusal().find("the processor is another one: --accept-other-kernels"),
            std::string::npos);
  disk_.kill();
  options_.durable->accept_other_kernels = true;
  (void)resume_and_tell();
  EXPECT_EQ(contents().kernels.back().kind, JournalKind::kOtherKernels);
}

TEST_F(OtherKernels, AreFoundOutWhereOneRecordOfTheirsIsGone) {
  (void)train_for(9);
  const auto before = disk_.contents();
  const FileSystem files = disk_.files();
  disk_.bytes(kFolder + "/kernels.json")[5] ^= 1;
  (void)resume_and_tell();
  EXPECT_EQ(disk_.bytes(kFolder + "/kernels.json"), before.at(kFolder + "/kernels.json"));
  put(before);
  options_.durable->files = disk_.files();
  disk_.bytes(kFolder + "/kernels.json")[5] ^= 1;
  options_.durable->kernels = some_kernels();
  EXPECT_NE(refusal().find("whose kernels.json does not tell which"), std::string::npos);
}

// Makes the journal one of version 1, which has steps alone, with the hashes that follow from that.
std::string as_version_1(const std::string& journal, std::uint64_t run_hash) {
  std::string text = "frazil.step_journal v1        " + to_hex(run_hash) + " ";
  std::uint64_t hash = hash_text(text);
  text += to_hex(hash) + "\n";
  for (std::size_t place = 64; place < journal.size(); place += 64) {
    const std::string body = journal.substr(place, 47);
    const bool is_step = parse_hex(body.substr(13, 16)).has_value();
    if (!is_step) continue;
    hash = hash_text(body, hash);
    text += body + to_hex(hash) + "\n";
  }
  return text;
}

// A run of 11 steps as earlier versions left it, the last two behind its checkpoint.
class UnknownKernels : public DurableTraining {
 protected:
  UnknownKernels() {
    options_.durable->kernels = some_kernels();
    (void)train_for(9);
    begun_ = disk_.contents();
    const std::size_t behind = 11;
    (void)resume();
    JournalContents there = contents();
    there.records.resize(behind);
    there.steps = static_cast<Step>(behind);
    begun_.erase(kFolder + "/kernels.json");
    begun_.at(kFolder + "/steps.journal") =
        as_version_1(journal_text(there, run_hash()), run_hash());
    begin_anew();
  }
  void begin_anew() {
    disk_.kill();
    put(begun_);
    options_.durable->files = disk_.files();
  }
  // Returns all that a person is told of a resume, warnings or not.
  std::string resume_and_tell_all() {
    options_.stop = {};
    options_.durable->resume = true;
    std::string told;
    expect_whole(
        train(options_, data_, [&](const TrainProgress& now) { told += now.event + "\n"; }));
    return told;
  }

  std::map<std::string, std::string> begun_;
};

constexpr const char* kUntold = "the run does not say which kernels computed its first 11 steps";

TEST_F(UnknownKernels, OfAJournalOfVersion1AreToldAndTheRunGoesOn) {
  const std::string told = resume_and_tell_all();
  EXPECT_NE(told.find("the journal was of version 1, which says nothing of weights and kernels, "
                      "and is one of version 2 now"),
            std::string::npos)
      << told;
  EXPECT_NE(told.find(kUntold), std::string::npos) << told;
  EXPECT_EQ(told.find("damaged"), std::string::npos) << told;
  EXPECT_NE(told.find("checkpoint of step 9, doing 2 steps again"), std::string::npos) << told;
  const JournalContents now = contents();
  EXPECT_EQ(now.records.size(), 18U);
  ASSERT_EQ(now.kernels.size(), 1U);
  EXPECT_EQ(now.kernels[0].step, 11) << "what computed the steps before is not known";
  std::string again;
  (void)train(options_, data_, [&](const TrainProgress& now) { again += now.event + "\n"; });
  EXPECT_EQ(again.find(kUntold), std::string::npos) << again;
}

TEST_F(UnknownKernels, OfATornJournalOfVersion1CostItsLastStepAlone) {
  begun_.at(kFolder + "/steps.journal").resize(64 * 12 - 5);
  begin_anew();
  const std::string told = resume_and_tell_all();
  EXPECT_EQ(told.find("damaged"), std::string::npos) << told;
  EXPECT_NE(told.find("the last 59 bytes of the journal were torn"), std::string::npos) << told;
  EXPECT_NE(told.find("computed its first 10 steps"), std::string::npos) << told;
}

TEST_F(UnknownKernels, OfADamagedJournalOfVersion1AreToldBesideTheDamage) {
  begun_.at(kFolder + "/steps.journal")[70] ^= 1;
  begin_anew();
  const std::string told = resume_and_tell_all();
  EXPECT_NE(told.find("the journal was damaged and is kept as"), std::string::npos) << told;
  EXPECT_NE(told.find("it holds 10 steps"), std::string::npos) << told;
}

TEST_F(UnknownKernels, AreNotTakenAsKnownWhereAStepGivesAnotherLoss) {
  JournalContents there = read_journal(begun_.at(kFolder + "/steps.journal"), run_hash()).contents;
  there.records.back().loss_bits ^= 1;
  begun_.at(kFolder + "/steps.journal") = as_version_1(journal_text(there, run_hash()), run_hash());
  begin_anew();
  for (int time = 0; time < 2; ++time) {
    EXPECT_NE(refusal().find("; the run does not say which kernels computed that step: "
                             "--accept-other-kernels to go on with other bits"),
              std::string::npos);
    disk_.kill();
  }
  options_.durable->accept_other_kernels = true;
  EXPECT_NE(resume_and_tell().find("bits differ from step 9 on"), std::string::npos);
  EXPECT_EQ(contents().kernels.back().kind, JournalKind::kOtherKernels);
  begin_anew();
  EXPECT_NE(resume_and_tell().find(kUntold), std::string::npos);
  EXPECT_EQ(contents().kernels.back().kind, JournalKind::kOtherKernels);
}

TEST_F(UnknownKernels, StaySoOnAnotherProcessorThatMustRepeatTheirBits) {
  JournalContents there = read_journal(begun_.at(kFolder + "/steps.journal"), run_hash()).contents;
  there.records.back().loss_bits ^= 1;
  begun_.at(kFolder + "/steps.journal") = as_version_1(journal_text(there, run_hash()), run_hash());
  begin_anew();
  (void)refusal();
  options_.durable->kernels->processor = "Another of the kind";
  for (int time = 0; time < 2; ++time) {
    disk_.kill();
    EXPECT_NE(refusal().find("; the run does not say which kernels computed that step: "
                             "--accept-other-kernels to go on with other bits"),
              std::string::npos);
    EXPECT_EQ(contents().kernels.back().step, 11) << "what computed the steps before is not known";
  }
  disk_.kill();
  options_.durable->accept_other_kernels = true;
  EXPECT_NE(resume_and_tell().find("bits differ from step 9 on"), std::string::npos);
}

TEST_F(UnknownKernels, OfAVersionToComeAreRefusedAndNothingChanges) {
  std::string& text = begun_.at(kFolder + "/steps.journal");
  text = journal_header(run_hash(), 3) + text.substr(64);
  begin_anew();
  const auto before = disk_.contents();
  EXPECT_NE(refusal().find("steps.journal:1: found a journal of version 3, expected one of version "
                           "1 to 2; the frazil that began this run can go on with it"),
            std::string::npos);
  EXPECT_EQ(disk_.contents(), before);
}

}  // namespace
}  // namespace frazil
