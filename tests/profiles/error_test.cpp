#include "profiles/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace frazil {
namespace {

TEST(InputError, IsOneSentenceWithFileAndLine) {
  const InputError error("plan.json", 12, "`-3`", "an integer from 0 to 9");
  EXPECT_STREQ(error.what(), "plan.json:12: found `-3`, expected an integer from 0 to 9");
  EXPECT_EQ(error.file(), "plan.json");
  EXPECT_EQ(error.line(), 12);
  EXPECT_EQ(error.found(), "`-3`");
  EXPECT_EQ(error.expected(), "an integer from 0 to 9");
}

TEST(InputError, LeavesLineZeroOut) {
  const InputError error("--hop", 0, "`1`", "a duration");
  EXPECT_STREQ(error.what(), "--hop: found `1`, expected a duration");
}

TEST(InputError, StaysOnOneLineWhateverTheFileIsCalled) {
  const InputError error("a\nb.json", 1, "\"x\ty\x7f\"", "no\rthing");
  EXPECT_STREQ(error.what(), "a\\x0ab.json:1: found \"x\\x09y\\x7f\", expected no\\x0dthing");
}

TEST(InputError, OfTheSystemSaysWhatItSaidAndHasItsCode) {
  const auto code_of = [](int error) {
    try {
      fail_system("out.json", error, "write", "a place");
    } catch (const InputError& refusal) {
      EXPECT_EQ(refusal.line(), 0);
      return static_cast<int>(refusal.code());
    }
  };
  for (const int error : {ENOSPC, EDQUOT, EFBIG, EIO}) EXPECT_EQ(code_of(error), 8) << error;
  for (const int error : {EACCES, EPERM, EROFS}) EXPECT_EQ(code_of(error), 9) << error;
  for (const int error : {ENOENT, ENOTDIR, ELOOP}) EXPECT_EQ(code_of(error), 2) << error;
  EXPECT_EQ(InputError("a", 1, "b", "c").code(), ExitCode::kBadInput);
  try {
    fail_system("out.json", ENOSPC, "", "a place");
  } catch (const InputError& refusal) {
    EXPECT_STREQ(refusal.what(),
                 "out.json: found the error \"No space left on device\", expected a place");
  }
}

TEST(Ensure, NamesThePlaceOfTheBug) {
  const auto break_it = [](int value) { ENSURE(value == 1, "one is one"); };
  EXPECT_NO_THROW(break_it(1));
  const int line = __LINE__ - 2;
  try {
    break_it(2);
    FAIL() << "ENSURE let a false condition pass";
  } catch (const std::logic_error& error) {
    EXPECT_EQ(std::string(error.what()),
              "profiles/error_test.cpp:" + std::to_string(line) + ": one is one");
  }
}

TEST(Ensure, IsNoInputError) {
  EXPECT_THROW(
      {
        try {
          fail_ensure("file.cpp", 1, "text");
        } catch (const InputError&) {
          FAIL() << "a bug must not pass for bad input";
        }
      },
      std::logic_error);
}

TEST(ExitCode, KeepsTheNumbersThatSupervisorsKnow) {
  EXPECT_EQ(static_cast<int>(ExitCode::kBadInput), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::kInfeasible), 3);
  EXPECT_EQ(static_cast<int>(ExitCode::kPleaseRestart), 75);
}

}  // namespace
}  // namespace frazil
