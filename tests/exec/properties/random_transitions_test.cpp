// A run that makes a transition to another plan, and to other masks, at every step has the bits of
// one that keeps its plan.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>

#include "tests/exec/support/small_vit.h"
#include "tests/exec/support/test_run.h"

namespace frazil {
namespace {

constexpr int kMovedDevices = 4;
constexpr int kMovedMicroBatches = 6;
constexpr std::size_t kTransitions = 100;

const std::vector<PlanShape>& visited_shapes() {
  using enum ScheduleKind;
  static const std::vector<PlanShape> all{
      {},
      {.cuts = {{4}}},
      {.schedule = kGpipe, .cuts = {{1}}},
      {.cuts = {{2, 4, 6}}},
      {.cuts = {{}, {}}, .owned = {3, 3}},
      {.cuts = {{5}, {}}, .owned = {4, 2}},
      {.cuts = {{3}, {6}}, .owned = {3, 3}},
      {.cuts = {{}, {}, {}, {}}, .owned = {2, 2, 1, 1}},
      {.schedule = kZbH1, .cuts = {{2, 5}}},
      {.schedule = kGpipe, .cuts = {{}, {2, 4}}, .owned = {2, 4}}};
  return all;
}

using Walk = std::vector<std::size_t>;  // of plans

// Visits every ordered pair of two different plans once, in random order: an Eulerian circuit
// through the complete graph (Hierholzer 1873).
Walk walk_all_pairs(std::size_t plans, std::mt19937& random) {
  std::vector<Walk> left(plans);
  for (std::size_t from = 0; from < plans; ++from) {
    for (std::size_t to = 0; to < plans; ++to) {
      if (to != from) left[from].push_back(to);
    }
    std::shuffle(left[from].begin(), left[from].end(), random);
  }
  Walk stack{0};
  Walk walk;
  while (!stack.empty()) {
    Walk& next = left[stack.back()];
    if (next.empty()) {
      walk.push_back(stack.back());
      stack.pop_back();
    } else {
      stack.push_back(next.back());
      next.pop_back();
    }
  }
  return walk;
}

FreezeMask draw_mask(std::mt19937& random) {
  FreezeMask mask = FreezeMask::all_active(kSmallBlocks);
  for (int block = 0; block + 1 < kSmallBlocks; ++block) {
    mask.set_active(BlockId{block}, random() % 2 == 0);
  }
  return mask;
}

// Each plan takes the devices in another order, so that even equal plans move.
Plan make_plan(Run& run, std::size_t shape, const FreezeMask& mask) {
  Plan plan = make_small_plan(run.structure(), visited_shapes()[shape]);
  plan.mask = mask;
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      for (DeviceId& device : stage.devices) {
        device = DeviceId{(device.value + static_cast<int>(shape)) % kMovedDevices};
      }
    }
  }
  return plan;
}

struct MovedCourse {
  std::vector<std::uint64_t> losses;  // their bits
  std::vector<Bytes> moved;
  std::uint64_t hash = 0;
};

// Makes a transition before every step.
MovedCourse take_course(const OptimizerConfig& optimizer, const Walk& walk,
                        const std::vector<FreezeMask>& masks) {
  VitConfig config = small_config();
  config.dropout = 0.1;
  TestRun run(make_vit(config), optimizer, 7, kMovedDevices);
  MovedCourse course;
  for (std::size_t i = 0; i < walk.size(); ++i) {
    const auto step = static_cast<Step>(i);
    course.moved.push_back(run.transition_to(make_plan(run, walk[i], masks[i])).move.moved);
    const StepResult result = run.step(step, 3e-3, small_micro_batches(step, kMovedMicroBatches));
    course.losses.push_back(std::bit_cast<std::uint64_t>(result.loss));
  }
  course.hash = run.weight_hash();
  return course;
}

class RandomTransitions : public testing::Test {
 protected:
  RandomTransitions() : random_(seed_) {
    RecordProperty("seed", static_cast<int>(seed_));
    walk_ = walk_all_pairs(visited_shapes().size(), random_);
    while (walk_.size() <= kTransitions) {
      const std::size_t next = random_() % visited_shapes().size();
      if (next != walk_.back()) walk_.push_back(next);
    }
  }

  // Expects the bits of the same masks under the first plan throughout.
  void expect_neutral(const OptimizerConfig& optimizer, const std::vector<FreezeMask>& masks) {
    SCOPED_TRACE("seed " + std::to_string(seed_));
    const MovedCourse moving = take_course(optimizer, walk_, masks);
    const MovedCourse staying = take_course(optimizer, Walk(walk_.size(), 0), masks);
    std::size_t moves = 0;  // not where a replica only goes away
    for (std::size_t i = 1; i < walk_.size(); ++i) {
      if (moving.moved[i] > Bytes{0}) ++moves;
      EXPECT_EQ(staying.moved[i], Bytes{0}) << "transition " << i;
    }
    EXPECT_GT(moves, kTransitions / 2);
    EXPECT_EQ(moving.losses, staying.losses);
    EXPECT_EQ(moving.hash, staying.hash);
  }

  unsigned seed_ = std::random_device{}();
  std::mt19937 random_;
  Walk walk_;
};

TEST_F(RandomTransitions, GoFromEveryPlanToEveryOther) {
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 1; i < walk_.size(); ++i) pairs.insert({walk_[i - 1], walk_[i]});
  EXPECT_EQ(walk_.size(), kTransitions + 1);
  EXPECT_EQ(pairs.size(), visited_shapes().size() * (visited_shapes().size() - 1));
}

TEST_F(RandomTransitions, UnderMasksThatGrowAndShrinkChangeNoBit) {
  std::vector<FreezeMask> masks;
  bool grows = false;
  bool shrinks = false;
  for (std::size_t i = 0; i < walk_.size(); ++i) {
    masks.push_back(draw_mask(random_));
    if (i == 0) continue;
    grows = grows || masks[i].frozen_count() > masks[i - 1].frozen_count();
    shrinks = shrinks || masks[i].frozen_count() < masks[i - 1].frozen_count();
  }
  EXPECT_TRUE(grows && shrinks) << "seed " << seed_;
  expect_neutral({.clip_norm = 1}, masks);
}

TEST_F(RandomTransitions, WithoutAReasonLeaveEveryLossAsItIs) {
  expect_neutral({.kind = OptimizerConfig::Kind::kSgd},
                 std::vector<FreezeMask>(walk_.size(), FreezeMask::all_active(kSmallBlocks)));
}

}  // namespace
}  // namespace frazil
