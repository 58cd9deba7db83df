// What processes have told of their caches is joined: work adds up, rows that are shared count
// once, and those of a lost process are gone.

#include "exec/cache/cache_tally.h"

#include <gtest/gtest.h>

#include "exec/cache/cache_report.h"

namespace frazil {
namespace {

CacheTally told_by(int process, std::uint64_t store, std::int64_t held) {
  return {.process = process,
          .store = store,
          .counts = {.stored = held, .found = 10 * held, .missed = held},
          .micro_batches = {.asked = 3, .whole = 2, .parts = 1},
          .checked = 1,
          .memory = {.written = {}, .read = {}, .reading = Duration{5}},
          .disk = {.written = {}, .read = {}, .reading = Duration{2}},
          .source = {.depth = 4, .feature = Bytes{8}, .in_memory = held, .on_disk = 1},
          .in_memory = held,
          .on_disk = 1,
          .used_in_memory = Bytes{8} * held};
}

TEST(CacheTally, OfProcessesThatShareNothingAddsUp) {
  const std::map<int, CacheTally> told{{0, told_by(0, 1, 6)}, {2, told_by(2, 3, 4)}};
  const CacheTally all = join_tallies(told, {0, 2});
  EXPECT_EQ(all.counts, (FeatureCounts{.stored = 10, .found = 100, .missed = 10}));
  EXPECT_EQ(all.micro_batches, (PrefixCounts{6, 4, 2}));
  EXPECT_EQ(all.checked, 2);
  EXPECT_EQ(all.reading(), Duration{14});
  EXPECT_EQ(all.source.depth, 4);
  EXPECT_EQ(all.source.in_memory, 10);
  EXPECT_EQ(all.in_memory, 10);
  EXPECT_EQ(all.on_disk, 2);
  EXPECT_EQ(all.used_in_memory, Bytes{80});
  EXPECT_EQ(count_stores(told, {0, 2}), 2);
}

TEST(CacheTally, CountsSharedRowsOnce) {
  const std::map<int, CacheTally> told{{0, told_by(0, 7, 9)}, {1, told_by(1, 7, 10)}};
  const CacheTally all = join_tallies(told, {0, 1});
  EXPECT_EQ(all.counts.found, 190);
  EXPECT_EQ(all.in_memory, 10);
  EXPECT_EQ(all.source.in_memory, 10);
  EXPECT_EQ(count_stores(told, {0, 1}), 1);
}

TEST(CacheTally, KeepsWhatALostProcessHasDoneAndNotWhatItHeld) {
  const std::map<int, CacheTally> told{{0, told_by(0, 1, 6)}, {1, told_by(1, 2, 4)}};
  const CacheTally all = join_tallies(told, {0});
  EXPECT_EQ(all.counts.found, 100);
  EXPECT_EQ(all.in_memory, 6);
  EXPECT_EQ(all.source.in_memory, 6);
  EXPECT_EQ(count_stores(told, {0}), 1);
  EXPECT_EQ(count_stores({}, {0}), 1);
}

// A process that has come in the place of a lost one begins to count anew.
TEST(CacheTally, AddsWhatWasDoneBefore) {
  CacheTally now = told_by(1, 2, 4);
  add_done(now, told_by(1, 9, 6));
  EXPECT_EQ(now.counts.found, 100);
  EXPECT_EQ(now.micro_batches, (PrefixCounts{6, 4, 2}));
  EXPECT_EQ(now.in_memory, 4);
  EXPECT_EQ(now.store, 2U);
}

// The deepest features are those to go on from.
TEST(CacheTally, GoesOnFromTheDeepestFeatures) {
  std::map<int, CacheTally> told{{0, told_by(0, 1, 6)}, {1, told_by(1, 2, 4)}};
  told[1].source = {.depth = 6, .feature = Bytes{16}, .in_memory = 3, .on_disk = 0};
  const FeatureCache::Source source = join_tallies(told, {0, 1}).source;
  EXPECT_EQ(source.depth, 6);
  EXPECT_EQ(source.feature, Bytes{16});
  EXPECT_EQ(source.in_memory, 3);
}

TEST(CacheReport, TellsOfEachProcess) {
  CacheReport report;
  report.depth = 3;
  report.counts = {.found = 7, .missed = 3};
  EXPECT_EQ(to_text(report).find("process"), std::string::npos);
  report.processes = {{0, {.found = 5, .found_before = 1, .missed = 2}},
                      {2, {.found = 2, .missed = 1}}};
  report.caches = 2;
  EXPECT_NE(to_text(report).find("; 2 caches that share nothing, process 0 found 6 and missed 2, "
                                 "process 2 found 2 and missed 1"),
            std::string::npos)
      << to_text(report);
  report.caches = 1;
  EXPECT_NE(to_text(report).find("; one cache for 2 processes, "), std::string::npos);
}

}  // namespace
}  // namespace frazil
