// All 56 plans of Pipe-BD's search over 4 devices and 6 blocks, run on devices whose layers wait
// their published times: the step that is predicted for each, its rank among the others, and what
// the plan that is chosen loses against the best.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "exec/devices/steady_time.h"
#include "exec/run/run.h"
#include "planner/partition/pipe_bd.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/pipe_bd/pipe_bd_workloads.h"
#include "profiles/cluster.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/models/waiting_networks.h"

namespace frazil {
namespace {

constexpr int kBatch = 240;
constexpr int kWindow = 8;
constexpr int kRounds = 3;

// The published means of blocks on ImageNet over `divisor`, of which the student waits a third in
// its forward.
std::vector<BlockWaits> published_waits(int divisor) {
  const BlockwiseTimes times = make_imagenet_times();
  std::vector<BlockWaits> waits(static_cast<std::size_t>(times.blocks()));
  for (std::size_t at = 0; at < times.batches.size(); ++at) {
    for (std::size_t b = 0; b < waits.size(); ++b) {
      const int samples = times.batches[at];
      const Duration student = times.student[at][b] / divisor;
      waits[b].teacher[samples] = times.teacher[at][b] / divisor;
      waits[b].forward[samples] = student / 3;
      waits[b].backward[samples] = student - student / 3;
    }
  }
  return waits;
}

struct Timed {
  std::string plan;
  Duration predicted{0};
  Duration measured{0};
};

std::vector<double> ranks_of(const std::vector<Timed>& plans, Duration Timed::*time) {
  std::vector<double> ranks;
  for (const Timed& plan : plans) {
    const auto below = std::count_if(plans.begin(), plans.end(),
                                     [&](const Timed& other) { return other.*time < plan.*time; });
    const auto equal = std::count_if(plans.begin(), plans.end(),
                                     [&](const Timed& other) { return other.*time == plan.*time; });
    ranks.push_back(static_cast<double>(below) + static_cast<double>(equal - 1) / 2);
  }
  return ranks;
}

// Spearman's rank correlation: Pearson's of the ranks, ties sharing theirs.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double product = 0;
  double squares_a = 0;
  double squares_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += (a[i] - mean) * (b[i] - mean);
    squares_a += (a[i] - mean) * (a[i] - mean);
    squares_b += (b[i] - mean) * (b[i] - mean);
  }
  return product / std::sqrt(squares_a * squares_b);
}

// Returns the least time of a step in a few windows: what other programs take of the machine only
// adds to it.
Duration measure(Run& run, Step& step) {
  Duration least = Duration::max();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<StepRequest> requests;
    for (int i = 0; i < kWindow; ++i) {
      requests.push_back(
          {.step = step,
           .learning_rate = 1e-3,
           .micro_batches = {make_waiting_samples(kBatch, static_cast<std::uint64_t>(step))}});
      ++step;
    }
    const SteadyTime start = std::chrono::steady_clock::now();
    (void)run.steps(requests);
    least = std::min<Duration>(least, since(start) / kWindow);
  }
  return least;
}

std::vector<Timed> time_all(int devices, int divisor) {
  const std::vector<BlockWaits> waits = published_waits(divisor);
  const ModelSpec model = make_distillation(make_waiting_networks(waits));
  const ModelProfile profile = make_waiting_profile(model, waits);
  const Cluster cluster = make_uniform_cluster(devices, Bytes{1 << 30}, {});
  const FreezeMask mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  Run run(model, momentum_sgd(), /*seed=*/7, devices);
  Step step = 0;
  std::vector<Timed> plans;
  visit_hybrid_plans(devices, static_cast<int>(waits.size()),
                     [&](const std::vector<int>& groups, const std::vector<int>& cuts) {
                       Plan plan = make_hybrid_plan({groups, cuts, {}}, profile, mask, kBatch);
                       plan.steps_ahead = kWindow - 1;
                       Timed timed{.plan = summarize(plan)};
                       timed.predicted = simulate_plan(plan, {profile, cluster}).step_time;
                       run.transition_to(plan);
                       timed.measured = measure(run, step);
                       plans.push_back(std::move(timed));
                     });
  return plans;
}

// Pairs that differ by less may change places where other programs run.
TEST(TwoDevicePlans, OnWaitingLayersAreInThePredictedOrder) {
  constexpr double kDiffers = 1.25;
  const std::vector<Timed> plans = time_all(2, 4);
  ASSERT_EQ(plans.size(), 6U);
  int compared = 0;
  for (const Timed& slow : plans) {
    for (const Timed& fast : plans) {
      if (static_cast<double>(slow.predicted.count()) <
          kDiffers * static_cast<double>(fast.predicted.count())) {
        continue;
      }
      EXPECT_GT(slow.measured, fast.measured) << slow.plan << " against " << fast.plan;
      ++compared;
    }
  }
  EXPECT_GE(compared, 5);
}

TEST(HybridPlans, OnWaitingLayersRankAsPredicted) {
  const std::vector<Timed> plans = time_all(4, 1);
  ASSERT_EQ(plans.size(), 56U);
  double worst = 0;
  for (const Timed& plan : plans) {
    const double error =
        static_cast<double>(plan.predicted.count()) / static_cast<double>(plan.measured.count()) -
        1;
    worst = std::max(worst, std::abs(error));
  }
  const double correlation =
      rank_correlation(ranks_of(plans, &Timed::predicted), ranks_of(plans, &Timed::measured));
  const auto by = [](Duration Timed::*time) {
    return [time](const Timed& a, const Timed& b) { return a.*time < b.*time; };
  };
  const Timed& chosen = *std::min_element(plans.begin(), plans.end(), by(&Timed::predicted));
  const Timed& best = *std::min_element(plans.begin(), plans.end(), by(&Timed::measured));
  const double regret =
      static_cast<double>(chosen.measured.count()) / static_cast<double>(best.measured.count()) - 1;
  std::printf(
      "56 plans: rank correlation %.4f, regret of the chosen plan %.2f %%, largest error "
      "%.2f %%\nchosen: %s\nbest:   %s\n",
      correlation, 100 * regret, 100 * worst, chosen.plan.c_str(), best.plan.c_str());
  EXPECT_GE(correlation, 0.95);
  EXPECT_LE(regret, 0.02);
}

}  // namespace
}  // namespace frazil
