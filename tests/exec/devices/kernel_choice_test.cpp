// Tests which branch of MKL's kernels a process takes, and that the answer is kept and found again.

#include "exec/devices/kernel_choice.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "profiles/text_file.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

KernelTrial trial(const std::string& branch, bool holds, std::int64_t nanoseconds) {
  return {branch, holds, Duration{nanoseconds}};
}

TEST(KernelChoice, TakesTheFastestThatHolds) {
  EXPECT_EQ(fastest_branch({trial("P", true, 1000), trial("A", true, 700), trial("B", true, 800)}),
            "A");
  EXPECT_EQ(fastest_branch({trial("P", true, 1000), trial("A", false, 0), trial("B", true, 800)}),
            "B");
}

TEST(KernelChoice, KeepsThePortableBranchUnlessAnotherIsClearlyFaster) {
  EXPECT_EQ(fastest_branch({trial("P", true, 1000), trial("A", true, 971)}), "P");
  EXPECT_EQ(fastest_branch({trial("P", true, 1000), trial("A", true, 969)}), "A");
  EXPECT_EQ(fastest_branch({trial("P", true, 1000), trial("A", true, 700), trial("B", true, 690)}),
            "A");
}

TEST(KernelChoice, WithoutAPortableBranchThatHoldsTakesAnyThatDoes) {
  EXPECT_EQ(fastest_branch({trial("P", false, 0), trial("A", true, 5000)}), "A");
  EXPECT_EQ(fastest_branch({trial("P", false, 0), trial("A", true, 900), trial("B", true, 800)}),
            "B");
  EXPECT_EQ(fastest_branch({trial("P", false, 0), trial("A", false, 0)}), "P");
}

TEST(KernelChoice, TheOtherBranchIsThePortableOneOrElseOneThatHolds) {
  EXPECT_EQ(other_branch({trial("P", true, 1000), trial("A", true, 700)}), "P");
  EXPECT_EQ(other_branch({trial("P", true, 1000), trial("A", true, 1000)}), "A");
  EXPECT_EQ(other_branch({trial("P", true, 1000), trial("A", false, 0)}), std::nullopt);
}

TEST(KernelChoice, TheFirstBranchOfAProcessorIsThePortableOne) {
  const std::vector<std::string> branches = list_branches();
  EXPECT_EQ(branches.front(), portable_branch());
  EXPECT_EQ(std::count(branches.begin(), branches.end(), portable_branch()), 1);
}

TEST(KernelChoice, ThisMachineHasABranchThatHoldsAndKeepsItsTrials) {
  const ProgramFolder folder("kernels");
  const fs::path place = folder.path("cache");
  const auto tried = known_trials(place);
  ASSERT_TRUE(tried.has_value());
  ASSERT_EQ(tried->size(), list_branches().size());
  EXPECT_TRUE(std::any_of(tried->begin(), tried->end(), [](const KernelTrial& trial) {
    return trial.holds && trial.time.count() > 0;
  }));
  EXPECT_EQ(known_trials(place), tried) << "read, not tried again";
  // What counts for another processor, and what is no such file, is tried again.
  fs::path file;
  for (const auto& entry : fs::directory_iterator(place)) {
    if (entry.path().extension() == ".json") file = entry.path();
  }
  std::string text = read_text_file(file);
  text.insert(text.find("\"for\": \"") + 8, "Another ");
  for (const std::string& other : {text, std::string("{\"format\": 3"), std::string()}) {
    write_text_file(file, other);
    EXPECT_EQ(known_trials(place).value_or(std::vector<KernelTrial>{}).size(), tried->size());
    EXPECT_NE(read_text_file(file), other);
  }
}

TEST(KernelChoice, AnAnswerThatCannotBeKeptIsNone) {
  const ProgramFolder folder("no-kernels");
  write_text_file(folder.path("file"), "");
  EXPECT_EQ(known_trials(folder.path("file/below")), std::nullopt);
}

// The lock is one of this very process, which holds as long as another that has been stopped.
TEST(KernelChoice, DoesNotWaitForEverForAnotherProcess) {
  const ProgramFolder folder("held-kernels");
  const int held = ::open(folder.path("kernels.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(known_trials(folder.path(""), std::chrono::milliseconds(120)), std::nullopt);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("the portable kernels are taken: another process has held "),
            std::string::npos)
      << told;
  ::close(held);
  EXPECT_TRUE(known_trials(folder.path("")).has_value());
}

TEST(KernelChoice, EndsAChildThatDoesNotAnswer) {
  EXPECT_EQ(try_branches({portable_branch()}, Duration{0}), std::nullopt);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

}  // namespace
}  // namespace frazil
