// Tests that following one group of each class gives the makespan that following all groups does.

#include "planner/bounds/alike_tail.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "planner/bounds/reduction_tail.h"
#include "planner/search/evaluate.h"
#include "tests/planner/support/search_cases.h"

namespace frazil {
namespace {

std::vector<std::vector<Duration>> draw_last_work(const Proposal& proposal,
                                                  const DeviceGroupClasses& classes,
                                                  std::mt19937_64& random) {
  std::vector<std::vector<Duration>> last_work;
  for (const GroupClass& group : proposal.classes) {
    std::vector<Duration>& own = last_work.emplace_back();
    for (std::size_t d = 0; d < classes.cluster(group.device_class).devices.size(); ++d) {
      own.emplace_back(static_cast<std::int64_t>(random() % 100'000));
    }
  }
  return last_work;
}

// How many of the compared cases are of a kind.
struct Kinds {
  int all = 0;
  int several_classes = 0;
  int many_groups = 0;  // more than the questions of search_cases.h have devices
  int clipped = 0;
  int commits = 0;  // over processes
  int fast = 0;
  int masked = 0;         // some blocks are frozen, some train
  int several_nodes = 0;  // of the exact tree, at one owner
};

void count(const SearchQuestion& question, const Shape& shape, const Proposal& proposal,
           Kinds& kinds) {
  const FreezeMask& mask = question.options.mask;
  const bool is_exact = question.options.reduction == ReductionMode::kExact;
  ++kinds.all;
  kinds.several_classes += proposal.classes.size() > 1;
  kinds.many_groups += shape.cell.replicas > 5;
  kinds.clipped += question.options.clip;
  kinds.fast += !is_exact;
  kinds.masked += mask != FreezeMask::all_active(mask.blocks());
  kinds.several_nodes += is_exact && proposal.most_nodes > 1 && shape.cell.replicas > 1;
}

// Draws a question, every third time with three times the devices and five times the batch.
SearchQuestion draw_question(std::uint64_t seed) {
  SearchQuestion question =
      seed % 2 == 0 ? draw_question_over_processes(seed) : draw_search_question(seed);
  if (seed % 3 != 0) return question;
  question.options.batch_size *= 5;
  const std::vector<Device> own = question.cluster.devices;
  for (int copy = 1; copy < 3; ++copy) {
    for (Device device : own) {
      device.name = fmt::format("{}.{}", device.name, copy);
      question.cluster.devices.push_back(std::move(device));
    }
  }
  return question;
}

TEST(AlikeTail, EndsWithTheTailOfAllGroups) {
  Kinds kinds;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const SearchQuestion question = draw_question(seed);
    const Setting setting{question.profile, question.cluster};
    OrderTable orders;
    Evaluator evaluator(setting, question.options, orders);
    const Activity activity = find_activity(question.profile, question.options.mask);
    const SpaceSums sums(question.profile, activity, evaluator.space());
    DeviceGroupClasses& classes = evaluator.device_classes();
    const std::vector<Shape> shapes = list_shapes(evaluator);
    for (int i = 0; i < 20 && !shapes.empty(); ++i) {
      const Shape& shape = shapes[random() % shapes.size()];
      const Proposal& proposal = evaluator.deal(shape);
      if (!GroupSimulation::applies(shape, proposal, question.options)) continue;
      const auto last_work = draw_last_work(proposal, classes, random);
      std::vector<const std::vector<Duration>*> of_classes;
      for (const auto& own : last_work) of_classes.push_back(&own);
      const DeviceGroups& groups = classes.groups(shape.cell, shape.variant.arrangement);
      const auto barrier =
          find_update_barrier(shape, groups, classes, question.cluster, question.options);
      const auto alike = find_alike_makespan(shape, proposal, of_classes, setting, classes, sums,
                                             question.options, barrier);
      if (!alike) continue;
      ReductionTail tail(shape, proposal, groups, sums, question.cluster, question.options,
                         barrier);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const auto& own = last_work[static_cast<std::size_t>(proposal.class_of[g])];
        for (std::size_t d = 0; d < own.size(); ++d) {
          tail.set_last_work(groups[g].devices[d], own[d], Bytes{kLargestQuantity});
        }
      }
      ASSERT_EQ(*alike, tail.makespan());
      count(question, shape, proposal, kinds);
      kinds.commits += barrier.value_or(Duration{0}) > Duration{0};
    }
  }
  EXPECT_GT(kinds.all, 2000);
  EXPECT_GT(kinds.several_classes, 600);
  EXPECT_GT(kinds.many_groups, 100);
  EXPECT_GT(kinds.clipped, 600);
  EXPECT_GT(kinds.commits, 400);
  EXPECT_GT(kinds.fast, 900);
  EXPECT_GT(kinds.masked, 1000);
  EXPECT_GT(kinds.several_nodes, 200);
}

}  // namespace
}  // namespace frazil
