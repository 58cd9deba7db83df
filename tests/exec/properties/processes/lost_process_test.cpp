// A process may be lost at any moment: no device is ever left with another number of updates than
// the others, and the run goes on, on the devices that are left, with the bits of one that was
// never disturbed.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "tests/exec/support/process_run.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr std::uint64_t kSeed = 7;
constexpr Step kSteps = 6;

OptimizerConfig adamw() { return {.learning_rate = 1e-2}; }

ModelSpec small_model() { return make_vit(small_config()); }

// How many processes a test kills, each some other time: `usual`, or as FRAZIL_KILLS says.
int count_kills(int usual) {
  const char* const asked = std::getenv("FRAZIL_KILLS");
  return asked ? std::atoi(asked) : usual;
}

// A plan for each step, and how many devices it leaves idle does not matter.
using PlanOf = std::function<PlanShape(Step)>;

std::uint64_t undisturbed(const PlanOf& plan_of, int devices) {
  Run run(small_model(), adamw(), kSeed, devices);
  for (Step step = 0; step < kSteps; ++step) {
    run.transition_to(make_small_plan(run.structure(), plan_of(step)));
    run.step(step, 1e-2, small_micro_batches(step, 6));
  }
  return run.weight_hash();
}

// Returns the numbers of updates of all layers that train, on all devices that are there.
std::set<std::int64_t> count_updates(ProcessRun& run, const std::set<int>& members) {
  std::set<std::int64_t> updates;
  const auto add = [&updates](const DevicePool& pool) {
    for (const DeviceState& device : pool.states()) {
      for (const auto& [layer, state] : device) updates.insert(state.updates);
    }
  };
  add(run.pool());
  for (const int process : members) {
    if (process != 0) add(run.member_pool(process));
  }
  return updates;
}

struct Outcome {
  std::uint64_t hash = 0;
  Step undone = -1;  // the step in which a process was lost; -1: none was lost in a step
  std::string sentence;
  std::set<std::int64_t> updates;  // just after the loss
};

// Runs `before` until process `lost` is killed some time into step 2, and then `after`, which uses
// no device of that process.
Outcome lose_one(const PlanShape& before, const PlanShape& after, const ProcessShape& shape,
                 int lost, microseconds into) {
  ProcessRun run(small_model(), adamw(), kSeed, shape);
  Outcome outcome;
  run.transition_to(make_small_plan(run.structure(), before));
  bool is_lost = false;
  for (Step step = 0; step < kSteps;) {
    std::jthread killer;
    if (step == 2 && !is_lost) {
      killer = std::jthread([&] {
        std::this_thread::sleep_for(into);
        run.kill(lost);
      });
      is_lost = true;
    }
    try {
      run.step(step, 1e-2, small_micro_batches(step, 6));
      ++step;
    } catch (const StepUndone& undone) {
      outcome.undone = step;
      outcome.sentence = undone.what();
      outcome.updates = count_updates(run, run.processes());
      (void)run.regroup();
      EXPECT_TRUE(run.lost_layers().empty());
      run.transition_to(make_small_plan(run.structure(), after));
    }
    if (killer.joinable()) killer.join();
  }
  outcome.hash = run.weight_hash();
  return outcome;
}

PlanShape replicas(int count) {
  PlanShape shape;
  shape.cuts.assign(static_cast<std::size_t>(count), {});
  shape.owned.assign(static_cast<std::size_t>(count), 6 / count);
  return shape;
}

TEST(LostProcess, LeavesTheBitsOfARunThatWasNeverDisturbed) {
  const std::uint64_t expected =
      undisturbed([](Step) { return replicas(1); }, 1);  // every plan has the same bits
  std::mt19937_64 random(24);
  std::set<Step> undone;
  for (int trial = 0; trial < count_kills(12); ++trial) {
    const microseconds into(random() % 12'000);
    SCOPED_TRACE("killed " + std::to_string(into.count()) + " us into step 2");
    const Outcome outcome = lose_one(replicas(2), replicas(1), {{0, 1}}, 1, into);
    EXPECT_EQ(outcome.hash, expected);
    undone.insert(outcome.undone);
    if (outcome.undone < 0) continue;
    EXPECT_EQ(outcome.sentence, "rank 1 is lost: its process has ended");
    EXPECT_EQ(outcome.updates, (std::set<std::int64_t>{outcome.undone}));
  }
  EXPECT_GT(undone.size(), 0U);
}

TEST(LostProcess, TearsNoStepOfTwoStagesTwice) {
  const PlanShape two_by_two{.cuts = {{4}, {4}}, .owned = {3, 3}};
  const PlanShape two{.cuts = {{4}}, .owned = {6}};
  const std::uint64_t expected = undisturbed([](Step) { return replicas(1); }, 1);
  std::mt19937_64 random(25);
  int undone = 0;
  for (int trial = 0; trial < count_kills(12); ++trial) {
    const int lost = 2 + static_cast<int>(random() % 2);
    const microseconds into(random() % 20'000);
    SCOPED_TRACE("process " + std::to_string(lost) + " killed " + std::to_string(into.count()) +
                 " us into step 2");
    const Outcome outcome = lose_one(two_by_two, two, {{0, 1, 2, 3}}, lost, into);
    EXPECT_EQ(outcome.hash, expected);
    if (outcome.undone < 0) continue;
    ++undone;
    EXPECT_EQ(outcome.updates, (std::set<std::int64_t>{outcome.undone})) << "a torn step";
    EXPECT_EQ(outcome.sentence, "rank " + std::to_string(lost) + " is lost: its process has ended");
  }
  EXPECT_GT(undone, 0);
}

// The pipeline of four stages on four processes has no second holder of any layer.
TEST(LostProcess, NamesTheLayersThatNobodyElseHolds) {
  ProcessRun run(small_model(), adamw(), kSeed, ProcessShape{{0, 1, 2, 3}});
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{2, 4, 6}}, .owned = {6}}));
  run.step(0, 1e-2, small_micro_batches(0, 6));
  const std::vector<LayerState> kept = run.gather_states();
  std::vector<LayerState> copies;
  for (const LayerState& state : kept) copies.push_back(clone(state));
  run.kill(2);
  EXPECT_THROW(run.step(1, 1e-2, small_micro_batches(1, 6)), StepUndone);
  EXPECT_EQ(run.regroup(), (std::vector<std::string>{"rank 2 is lost: its process has ended"}));
  EXPECT_EQ(run.lost_layers(), (std::vector<LayerId>{LayerId{4}, LayerId{5}}));
  // From a copy of all layers the run goes on, and has the bits of an undisturbed one.
  run.restore(std::move(copies));
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{4}}, .owned = {6}}));
  for (Step step = 1; step < kSteps; ++step) run.step(step, 1e-2, small_micro_batches(step, 6));
  EXPECT_EQ(run.weight_hash(), undisturbed([](Step) { return replicas(1); }, 1));
}

TEST(LostProcess, LeavesTheOldPlanWhollyInForceWhereATransitionFails) {
  const std::uint64_t expected = undisturbed([](Step) { return replicas(1); }, 1);
  std::mt19937_64 random(26);
  for (int trial = 0; trial < count_kills(8); ++trial) {
    const int lost = trial % 2 == 0 ? 1 : 2;  // a giver, or a taker
    const microseconds into(random() % 3'000);
    SCOPED_TRACE("process " + std::to_string(lost) + " killed " + std::to_string(into.count()) +
                 " us into the transition");
    ProcessRun run(small_model(), adamw(), kSeed, ProcessShape{{0, 1, 2}});
    run.transition_to(make_small_plan(run.structure(), replicas(2)));
    run.step(0, 1e-2, small_micro_batches(0, 6));
    std::jthread killer([&] {
      std::this_thread::sleep_for(into);
      run.kill(lost);
    });
    try {
      run.transition_to(make_small_plan(run.structure(), {.cuts = {{2, 5}}, .owned = {6}}));
    } catch (const StepUndone&) {
    }
    killer.join();
    for (Step step = 1; step < kSteps;) {
      try {
        run.step(step, 1e-2, small_micro_batches(step, 6));
        ++step;
      } catch (const StepUndone&) {
        (void)run.regroup();
        if (!run.lost_layers().empty()) break;
        run.transition_to(make_small_plan(run.structure(), replicas(1)));
      }
    }
    // After the transition the lost process alone may have held layers; before it none did.
    if (run.lost_layers().empty()) {
      EXPECT_EQ(run.weight_hash(), expected);
    }
  }
}

}  // namespace
}  // namespace frazil
