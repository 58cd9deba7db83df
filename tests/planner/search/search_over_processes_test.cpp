// Tests the search for the best plan where devices lie in several processes.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "planner/plan/commit_round.h"
#include "planner/search/search.h"
#include "profiles/processes.h"
#include "tests/planner/support/search_cases.h"

namespace frazil {
namespace {

// Returns the makespan of the best plan; kNever if none fits.
Duration least_makespan(const SearchQuestion& question) {
  const Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
  return ranking.best() == nullptr ? kNever : ranking.best()->makespan;
}

// Draws a question without classes of links, so that processes change nothing but the rounds.
SearchQuestion draw_question(std::uint64_t seed) {
  SearchQuestion question = draw_question_over_processes(seed);
  question.cluster.link_classes = {};
  question.options.keep = 1;
  return question;
}

TEST(SearchOverProcesses, IsNeverBetterThanInOneProcess) {
  int slower = 0;
  for (std::uint64_t seed = 5000; seed < 5300; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_question(seed);
    // Processes may change the order of devices, and listed links tell devices apart.
    if (!question.cluster.links.empty()) continue;
    const Duration round = commit_round_of(question.cluster);
    SearchQuestion together = question;
    together.cluster.commit_round.reset();
    for (Device& device : together.cluster.devices) device.process = kUnnamedProcess;
    const Duration over = least_makespan(question);
    const Duration in_one = least_makespan(together);
    ASSERT_EQ(over == kNever, in_one == kNever);
    if (over == kNever) continue;
    EXPECT_GE(over, in_one);
    slower += over > in_one ? 1 : 0;
    question.cluster.commit_round = round + Duration{10'000};
    EXPECT_GE(least_makespan(question), over);
  }
  EXPECT_GT(slower, 30);
}

bool has_update(const SearchQuestion& question) {
  const Activity activity = find_activity(question.profile, question.options.mask);
  return std::any_of(activity.layers.begin(), activity.layers.end(),
                     [](const LayerActivity& layer) { return layer.weight_gradient; });
}

TEST(SearchOverProcesses, FindsTheSameWithClassesOfLinksAsWithEveryLinkListed) {
  int with_classes = 0;
  for (std::uint64_t seed = 6000; seed < 6300; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_question_over_processes(seed);
    if (question.cluster.link_classes.empty()) continue;
    ++with_classes;
    question.options.keep = 2;
    SearchQuestion listed = question;
    listed.cluster.commit_round = commit_round_of(question.cluster);  // tells of processes still
    listed.cluster.link_classes = {};
    listed.cluster.links.clear();
    for (const DeviceId from : all_devices(question.cluster)) {
      for (const DeviceId to : all_devices(question.cluster)) {
        if (from != to) listed.cluster.links.push_back({from, to, question.cluster.link(from, to)});
      }
    }
    const Ranking one = search_plans({question.profile, question.cluster}, question.options);
    const Ranking other = search_plans({listed.profile, listed.cluster}, listed.options);
    ASSERT_EQ(one.best() == nullptr, other.best() == nullptr);
    if (one.best() == nullptr) continue;
    EXPECT_EQ(one.best()->makespan, other.best()->makespan);
  }
  EXPECT_GT(with_classes, 100);
}

// Returns the least makespan of the plans on at most so many devices, or on more, by simulating
// every whole plan of one process.
Duration find_least(SearchQuestion question, bool clip, int devices, bool more) {
  for (Device& device : question.cluster.devices) device.process = kUnnamedProcess;
  question.cluster.commit_round.reset();
  question.options.keep = 0;
  question.options.clip = clip;
  Duration least = kNever;
  const Ranking all = search_plans({question.profile, question.cluster}, question.options);
  for (const Candidate& candidate : all.candidates) {
    const auto used = static_cast<int>(list_used_devices(candidate.plan).size());
    if (candidate.infeasible || (used > devices) != more) continue;
    least = std::min(least, candidate.makespan);
  }
  return least;
}

// Devices and links are alike here, so a plan has its devices in one process if that has enough.
TEST(SearchOverProcesses, FindsWhatTryingEveryPlanInOneProcessAndInSeveralFinds) {
  std::map<bool, int> count;  // by whether the best plan has a commit round
  for (std::uint64_t seed = 4; seed < 1000; seed += 4) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_question(seed);
    question.cluster.links.clear();
    question.options.joint = true;
    if (!has_update(question)) continue;
    std::mt19937_64 random(seed);
    for (Device& device : question.cluster.devices) {
      device.process = ProcessId(static_cast<int>(random() % 3));
    }
    const int largest = count_in_largest_process(question.cluster);
    const Ranking found = search_plans({question.profile, question.cluster}, question.options);
    const Duration in_one = find_least(question, question.options.clip, largest, false);
    Duration over = find_least(question, true, largest, true);
    if (over < kNever) over += commit_round_of(question.cluster);
    const Duration least = std::min(in_one, over);
    ASSERT_EQ(found.best() == nullptr, least == kNever);
    if (least == kNever) continue;
    EXPECT_EQ(found.best()->makespan, least);
    if (in_one == over) continue;
    const bool commits = find_commit_round(found.best()->plan, question.cluster).has_value();
    EXPECT_EQ(commits, over < in_one);
    ++count[commits];
  }
  EXPECT_GT(count[false], 30);
  EXPECT_GT(count[true], 30);
}

}  // namespace
}  // namespace frazil
