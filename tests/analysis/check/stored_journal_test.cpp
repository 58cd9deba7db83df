#include "analysis/check/stored_journal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/check/hash_stream.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

class StoredJournalFile : public testing::Test {
 protected:
  void add(const std::string& body) {
    ASSERT_EQ(body.size(), 47U);
    seed_ = hash_of(body, seed_);
    text_ += body + hex_text(seed_) + "\n";
  }
  void add_line(Step step, const std::string& first, std::uint64_t second) {
    add(fmt::format("{:012} {:16} {:016x} ", step, first, second));
  }
  void add_step(Step step, std::uint64_t loss) { add_line(step, hex_text(loss), 5); }
  StoredJournal read() const {
    write_text_file(folder_.path("steps.journal"), text_);
    return read_stored_journal(folder_.path("steps.journal"));
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  std::uint64_t seed_ = 0;
  std::string text_;
};

TEST_F(StoredJournalFile, SaysWhatItsLinesSay) {
  add("frazil.step_journal v2        00000000000000aa ");
  add_line(0, "kernels", 7);
  for (Step step = 0; step < 4; ++step) add_step(step, 100 + static_cast<std::uint64_t>(step));
  add_line(2, "weights", 8);
  add_line(4, "weights", 9);
  add_line(2, "other-kernels", 6);
  add_step(2, 200);
  add_line(3, "lost", 5);
  const StoredJournal journal = read();
  EXPECT_TRUE(journal.problems.empty());
  EXPECT_EQ(journal.run_hash, 0xaaU);
  EXPECT_EQ(journal.steps, 8);
  EXPECT_EQ(journal.lost, 5);
  EXPECT_EQ(journal.records.size(), 3U);
  EXPECT_EQ(journal.records.at(2).loss_bits, 200U);
  EXPECT_EQ(journal.weights, (std::map<Step, std::uint64_t>{{2, 8}}));
  EXPECT_EQ(journal.kernels, 6U);
  EXPECT_EQ(journal.other_bits_from, (std::vector<Step>{2}));
}

TEST_F(StoredJournalFile, OfVersion1IsReadAndToldOf) {
  add("frazil.step_journal v1        00000000000000aa ");
  for (Step step = 0; step < 4; ++step) add_step(step, 100);
  const StoredJournal journal = read();
  EXPECT_TRUE(journal.problems.empty());
  EXPECT_EQ(journal.steps, 4);
  EXPECT_EQ(
      journal.notes,
      (std::vector<std::string>{"it is of version 1, which has no hashes of weights and kernels"}));
}

TEST_F(StoredJournalFile, TellsATornEndFromDamage) {
  add("frazil.step_journal v2        00000000000000aa ");
  for (Step step = 0; step < 4; ++step) add_step(step, 100);
  const std::string whole = text_;
  text_ = whole.substr(0, whole.size() - 9);
  EXPECT_TRUE(read().problems.empty());
  EXPECT_EQ(read().notes.size(), 1U);
  EXPECT_EQ(read().steps, 3);
  text_ = whole;
  text_[100] ^= 1;
  ASSERT_EQ(read().problems.size(), 1U);
  EXPECT_EQ(read().problems[0], "line 2 does not hold, with 192 bytes behind it");
  text_ = whole;
  text_[3] ^= 1;
  ASSERT_EQ(read().problems.size(), 1U);
  EXPECT_EQ(read().problems[0], "its first line does not hold");
}

TEST(HashStream, IsXxh64WhateverThePieces) {
  EXPECT_EQ(hash_of(""), 0xef46db3751d8e999U);
  HashStream pieces;
  for (const char* const piece : {"a", "bc", "", "def"}) pieces.add(piece);
  EXPECT_EQ(pieces.value(), hash_of("abcdef"));
}

}  // namespace
}  // namespace frazil
