#include "planner/plan/commit_round.h"

#include <gtest/gtest.h>

#include "profiles/processes.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

Cluster make_cluster_of(int devices, int processes) {
  Cluster cluster = make_shared_cluster(devices);
  deal_processes(cluster, processes, "--procs");
  return cluster;
}

TEST(CommitRound, BelongsToStepsOnDevicesOfSeveralProcesses) {
  const Plan plan = make_shared_plan({1, 1}, 1, 2, {});
  EXPECT_EQ(find_commit_round(plan, make_shared_cluster(4)), std::nullopt);
  EXPECT_EQ(find_commit_round(plan, make_cluster_of(4, 1)), std::nullopt);
  // The plan uses devices 0 and 1 alone.
  EXPECT_EQ(find_commit_round(plan, make_cluster_of(4, 2)), std::nullopt);
  EXPECT_EQ(find_commit_round(plan, make_cluster_of(2, 2)), kDefaultCommitRound);
  Cluster measured = make_cluster_of(4, 4);
  measured.commit_round = Duration{7};
  EXPECT_EQ(find_commit_round(plan, measured), Duration{7});
}

TEST(CommitRound, IsMissingFromPlansThatUpdateAmongTheirBackwards) {
  const Cluster cluster = make_cluster_of(2, 2);
  Plan plan = make_shared_plan({1, 1}, 1, 2, {});
  EXPECT_TRUE(updates_at_end(plan));
  EXPECT_FALSE(ends_with_a_process(plan, cluster));

  plan.versions = WeightVersions::kStash;
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream};
  EXPECT_EQ(find_commit_round(plan, cluster), std::nullopt);
  EXPECT_TRUE(ends_with_a_process(plan, cluster));
  EXPECT_FALSE(ends_with_a_process(plan, make_cluster_of(2, 1)));

  plan.versions = WeightVersions::kSync;
  const auto listed = [](const char* text) {
    return ExplicitSchedule{parse_schedule(text, "lists").devices};
  };
  plan.schedule = listed("d0: 0F0 0F1 0B0 0B1\nd1: 1F0 1B0 1F1 1B1\n");
  EXPECT_EQ(find_commit_round(plan, cluster), kDefaultCommitRound);
  plan.schedule = listed("d0: 0F0 0F1 0B0 0B1\nd1: 1F0 1B0 1F1 1B1 1U\n");
  EXPECT_EQ(find_commit_round(plan, cluster), std::nullopt);
  EXPECT_TRUE(ends_with_a_process(plan, cluster));
}

}  // namespace
}  // namespace frazil
