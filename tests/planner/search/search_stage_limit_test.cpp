// --max-stages counts stages as a plan does: each chunk of a device is one.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/bounds/shape.h"
#include "planner/search/search.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

TEST(StageLimit, CountsEveryChunkOfADevice) {
  const ModelProfile profile = make_chain(12, microseconds(10), microseconds(10), microseconds(10));
  const Cluster cluster = make_uniform_cluster(3, Bytes{10'000'000}, {microseconds(1), {}});
  SearchOptions options;
  options.batch_size = 6;
  options.micro_batch_sizes = {1};
  options.mask = FreezeMask::all_active(12);
  options.schedules = synchronous_schedules();
  options.joint = true;
  options.keep = 0;
  std::set<std::size_t> before;
  for (const int limit : {0, 6, 4, 3, 2, 1}) {
    SCOPED_TRACE(limit);
    options.max_stages = limit;
    std::set<std::size_t> lengths;
    for (const Candidate& candidate : search_plans({profile, cluster}, options).candidates) {
      for (const Pipeline& pipeline : candidate.plan.pipelines) {
        lengths.insert(pipeline.stages.size());
      }
    }
    if (limit == 0) {
      EXPECT_GT(*lengths.rbegin(), 6U);
      before = lengths;
      continue;
    }
    // Exactly the lengths within the limit remain of those that were there without it.
    std::set<std::size_t> expected;
    for (const std::size_t length : before) {
      if (length <= static_cast<std::size_t>(limit)) expected.insert(length);
    }
    EXPECT_EQ(lengths, expected);
  }
}

TEST(StageLimit, TheSearchThatBoundsFindsTheBestWithinIt) {
  const ModelProfile profile = make_chain(12, microseconds(10), microseconds(10), microseconds(10));
  const Cluster cluster = make_uniform_cluster(3, Bytes{10'000'000}, {microseconds(1), {}});
  SearchOptions options;
  options.batch_size = 6;
  options.micro_batch_sizes = {1, 2};
  options.mask = FreezeMask::all_active(12);
  options.schedules = synchronous_schedules();
  options.joint = true;
  for (const int limit : {5, 3, 2, 1}) {
    SCOPED_TRACE(limit);
    options.max_stages = limit;
    options.keep = 0;
    const Ranking all = search_plans({profile, cluster}, options);
    options.keep = 1;
    const Ranking found = search_plans({profile, cluster}, options);
    ASSERT_NE(found.best(), nullptr);
    EXPECT_EQ(found.best()->plan, all.best()->plan);
  }
}

}  // namespace
}  // namespace frazil
