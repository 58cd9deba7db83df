// Sizes of batches are tried before they are used, and left alone once they gave other bits.

#include "exec/cache/batch_sizes.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

using BatchWork = BatchSizes::Work;

constexpr BatchWork kWork{.from = 0, .depth = 3, .whole = 8};

void note_trials(BatchSizes& sizes, const BatchWork& work, std::int64_t rows, int count) {
  for (int trial = 0; trial < count; ++trial) sizes.note(work, rows, /*same_bits=*/true);
}

TEST(BatchSizes, AreTriedBeforeTheyAreUsed) {
  BatchSizes sizes(/*are_exact=*/true);
  for (int trial = 0; trial < BatchSizes::kTrials; ++trial) {
    EXPECT_EQ(sizes.choose(kWork, 5).rows, 5);
    EXPECT_FALSE(sizes.choose(kWork, 5).is_trusted);
    sizes.note(kWork, 5, true);
  }
  EXPECT_TRUE(sizes.choose(kWork, 5).is_trusted);
  EXPECT_FALSE(sizes.choose(kWork, 6).is_trusted) << "each for itself";
}

TEST(BatchSizes, UpToTheLargestWithOtherBitsAreNotUsed) {
  BatchSizes sizes(/*are_exact=*/true);
  note_trials(sizes, kWork, 2, BatchSizes::kTrials);
  note_trials(sizes, kWork, 4, BatchSizes::kTrials);
  EXPECT_TRUE(sizes.choose(kWork, 2).is_trusted);
  sizes.note(kWork, 3, false);
  EXPECT_EQ(sizes.choose(kWork, 1).rows, 4);
  EXPECT_EQ(sizes.choose(kWork, 2).rows, 4) << "though it gave the same bits itself";
  EXPECT_TRUE(sizes.choose(kWork, 3).is_trusted);
  sizes.note(kWork, 7, false);
  EXPECT_EQ(sizes.choose(kWork, 1).rows, kWork.whole);
  EXPECT_TRUE(sizes.choose(kWork, 1).is_trusted);
}

TEST(BatchSizes, OfOtherLayersOrOtherMicroBatchesAreOthers) {
  BatchSizes sizes(/*are_exact=*/true);
  note_trials(sizes, kWork, 2, BatchSizes::kTrials);
  for (const BatchWork& other : {BatchWork{1, 3, 8}, BatchWork{0, 4, 8}, BatchWork{0, 3, 7}}) {
    EXPECT_FALSE(sizes.choose(other, 2).is_trusted);
    sizes.note(other, 2, false);
  }
  EXPECT_TRUE(sizes.choose(kWork, 2).is_trusted);
}

TEST(BatchSizes, WhereBitsDoNotCountAreUsedAtOnce) {
  const BatchSizes sizes(/*are_exact=*/false);
  EXPECT_EQ(sizes.choose(kWork, 1).rows, 1);
  EXPECT_TRUE(sizes.choose(kWork, 1).is_trusted);
}

}  // namespace
}  // namespace frazil
