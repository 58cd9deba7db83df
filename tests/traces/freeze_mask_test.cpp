#include "traces/freeze_mask.h"

#include <gtest/gtest.h>

#include "profiles/error.h"

namespace frazil {
namespace {

TEST(FreezeMask, WritesBlockZeroFirst) {
  EXPECT_EQ(FreezeMask::all_active(4).text(), "1111");
  EXPECT_EQ(FreezeMask::frozen_prefix(7, BlockId{2}).text(), "0001111");
  EXPECT_EQ(FreezeMask{}.text(), "");
}

TEST(FreezeMask, NeverFreezesTheHead) {
  EXPECT_EQ(FreezeMask::frozen_prefix(4, BlockId{2}).text(), "0001");
  EXPECT_EQ(FreezeMask::frozen_prefix(4, BlockId{3}).text(), "0001");
  EXPECT_EQ(FreezeMask::frozen_prefix(4, BlockId{1000}).text(), "0001");
  EXPECT_EQ(FreezeMask::frozen_prefix(1, BlockId{0}).text(), "1");
  FreezeMask mask = FreezeMask::all_active(3);
  EXPECT_THROW(mask.set_active(BlockId{2}, false), std::logic_error);
}

TEST(FreezeMask, FreezesBlockZeroAloneOrNothing) {
  EXPECT_EQ(FreezeMask::frozen_prefix(4, BlockId{0}).text(), "0111");
  EXPECT_EQ(FreezeMask::frozen_prefix(4, BlockId{-1}).text(), "1111");
}

TEST(FreezeMask, IsReadBackForEveryPattern) {
  constexpr int kBlocks = 10;
  for (int bits = 0; bits < 1 << (kBlocks - 1); ++bits) {
    FreezeMask mask = FreezeMask::all_active(kBlocks);
    int frozen = 0;
    for (int block = 0; block + 1 < kBlocks; ++block) {
      const bool active = (bits >> block & 1) == 1;
      mask.set_active(BlockId{block}, active);
      frozen += active ? 0 : 1;
      ASSERT_EQ(mask.is_active(BlockId{block}), active);
      ASSERT_EQ(mask.is_frozen(BlockId{block}), !active);
    }
    ASSERT_EQ(mask.frozen_count(), frozen);
    ASSERT_EQ(mask.blocks(), kBlocks);
    ASSERT_EQ(FreezeMask::parse(mask.text(), "mask", 0), mask);
  }
}

TEST(FreezeMask, ThawsABlock) {
  FreezeMask mask = FreezeMask::parse("0011", "mask", 0);
  mask.set_active(BlockId{0}, true);
  EXPECT_EQ(mask.text(), "1011");
}

TEST(FreezeMask, RefusesTextThatIsNoMask) {
  for (const char* text : {"", "0", "10", "0000", "01a1", "0 1", "-1", "2", "1\n"}) {
    SCOPED_TRACE(text);
    try {
      FreezeMask::parse(text, "run.jsonl", 5);
      FAIL() << "read";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "run.jsonl");
      EXPECT_EQ(error.line(), 5);
    }
  }
}

TEST(FreezeMask, RefusesABlockThatIsNotThere) {
  FreezeMask mask = FreezeMask::all_active(3);
  EXPECT_THROW(mask.set_active(BlockId{3}, true), std::logic_error);
  EXPECT_THROW(mask.set_active(BlockId{-1}, true), std::logic_error);
  EXPECT_THROW(static_cast<void>(mask.is_active(BlockId{3})), std::logic_error);
  EXPECT_THROW(FreezeMask::all_active(0), std::logic_error);
}

}  // namespace
}  // namespace frazil
