// A process may be lost at any moment: no device is ever left with another number of updates than
// the others, and the run goes on, on the devices that are left, with the bits of one that was
// never disturbed.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "planner/plan/plan_json.h"
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

// Tells a campaign how many kills met what they were meant for.
void tell_met(int kills) { std::printf("met %d\n", kills); }

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

// Returns the plans that are in force in the processes that live, whose devices hold what they are
// said to hold.
std::set<std::string> list_plans(ProcessRun& run, int lost) {
  std::set<std::string> plans;
  for (const int process : run.processes()) {
    if (process == lost) continue;
    const LeftState left = state_of(process == 0 ? run.pool() : run.member_pool(process));
    EXPECT_TRUE(left.is_sound) << "process " << process;
    plans.insert(left.plan ? to_json(*left.plan) : "none");
  }
  return plans;
}

struct Outcome {
  std::uint64_t hash = 0;
  Step undone = -1;  // the step in which a process was lost; -1: none was lost in a step
  std::string sentence;
  std::set<std::int64_t> updates;  // just after the loss
};

// Returns the hash of all weights. That a process is lost may show only here, where the steps after
// its end were too quick for anyone to hear of it.
std::uint64_t hash_of_those_left(ProcessRun& run, const PlanShape& after) {
  try {
    return run.weight_hash();
  } catch (const StepUndone&) {
    (void)run.regroup();
    EXPECT_TRUE(run.lost_layers().empty());
    run.transition_to(make_small_plan(run.structure(), after));
    return run.weight_hash();
  }
}

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
  outcome.hash = hash_of_those_left(run, after);
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
  int met = 0;
  for (int trial = 0; trial < count_kills(12); ++trial) {
    const microseconds into(random() % 12'000);
    SCOPED_TRACE("killed " + std::to_string(into.count()) + " us into step 2");
    const Outcome outcome = lose_one(replicas(2), replicas(1), {{0, 1}}, 1, into);
    EXPECT_EQ(outcome.hash, expected);
    undone.insert(outcome.undone);
    if (outcome.undone < 0) continue;
    ++met;
    EXPECT_EQ(outcome.sentence, "rank 1 is lost: its process has ended");
    EXPECT_EQ(outcome.updates, (std::set<std::int64_t>{outcome.undone}));
  }
  EXPECT_GT(undone.size(), 0U);
  tell_met(met);
}

TEST(LostProcess, TearsNoStepOfTwoStagesTwice) {
  const PlanShape two_by_two{.cuts = {{4}, {4}}, .owned = {3, 3}};
  const PlanShape two{.cuts = {{4}}, .owned = {6}};
  const std::uint64_t expected = undisturbed([](Step) { return replicas(1); }, 1);
  std::mt19937_64 random(25);
  int undone = 0;
  for (int trial = 0; trial < count_kills(12); ++trial) {
    // Four processes of a device, or two of two devices.
    const bool has_pairs = trial % 2 == 1;
    const int lost = has_pairs ? 1 : 2 + static_cast<int>(random() % 2);
    const ProcessShape shape{has_pairs ? std::vector<int>{0, 0, 1, 1}
                                       : std::vector<int>{0, 1, 2, 3}};
    const microseconds into(random() % 20'000);
    SCOPED_TRACE("process " + std::to_string(lost) + " killed " + std::to_string(into.count()) +
                 " us into step 2");
    const Outcome outcome = lose_one(two_by_two, two, shape, lost, into);
    EXPECT_EQ(outcome.hash, expected);
    if (outcome.undone < 0) continue;
    ++undone;
    EXPECT_EQ(outcome.updates, (std::set<std::int64_t>{outcome.undone})) << "a torn step";
    EXPECT_EQ(outcome.sentence,
              has_pairs ? "ranks 2 and 3 are lost: their process has ended"
                        : "rank " + std::to_string(lost) + " is lost: its process has ended");
  }
  EXPECT_GT(undone, 0);
  tell_met(undone);
}

// A process whose devices the plan leaves idle sleeps. What the others do needs nothing of it, and
// yet its loss ends what is under way.
TEST(LostProcess, ThatSleptHasNoStepDoneTwice) {
  struct Case {
    std::string name;
    PlanShape plan;
    std::vector<int> process_of;
    int lost = 1;
  };
  const std::vector<Case> cases{
      {"one device of the leader", replicas(1), {0, 1}},
      {"two devices of the leader", replicas(2), {0, 0, 1}},
      {"two stages of the leader", {.cuts = {{4}}, .owned = {6}}, {0, 0, 1}},
      {"two devices of a member", replicas(2), {1, 1, 0, 2}, 2}};
  const std::uint64_t expected = undisturbed([](Step) { return replicas(1); }, 1);
  std::mt19937_64 random(27);
  int met = 0;
  for (int trial = 0; trial < count_kills(24); ++trial) {
    const Case& one = cases[static_cast<std::size_t>(trial) % cases.size()];
    const microseconds into(random() % 12'000);
    SCOPED_TRACE(one.name + ", killed " + std::to_string(into.count()) + " us into step 2");
    const Outcome outcome =
        lose_one(one.plan, replicas(1), {.process_of = one.process_of}, one.lost, into);
    EXPECT_EQ(outcome.hash, expected);
    if (outcome.undone < 0) continue;
    ++met;
    EXPECT_EQ(outcome.updates, (std::set<std::int64_t>{outcome.undone})) << "a torn step";
  }
  tell_met(met);
}

TEST(LostProcess, ThatIsLostBetweenTwoStepsUndoesTheNextOne) {
  for (const std::vector<int>& process_of : {std::vector<int>{0, 1}, {0, 0, 1}}) {
    ProcessRun run(small_model(), adamw(), kSeed, ProcessShape{process_of});
    run.transition_to(
        make_small_plan(run.structure(), replicas(static_cast<int>(process_of.size()) - 1)));
    run.step(0, 1e-2, small_micro_batches(0, 6));
    run.kill(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    try {
      run.step(1, 1e-2, small_micro_batches(1, 6));
    } catch (const StepUndone& undone) {
      EXPECT_EQ(count_updates(run, run.processes()), std::set<std::int64_t>{1}) << undone.what();
    }
  }
}

// Nothing brings back weights that were overwritten on the way.
TEST(LostProcess, EndsARunWhoseWeightsHaveVersions) {
  ProcessRun run(small_model(), adamw(), kSeed, ProcessShape{{0, 1, 2}});
  Plan plan = make_small_plan(run.structure(), {.cuts = {{4}}, .owned = {6}});
  plan.schedule = NamedSchedule{ScheduleKind::kPipeDream};
  plan.versions = WeightVersions::kStash;
  run.transition_to(plan);
  run.step(0, 1e-2, small_micro_batches(0, 6));
  run.kill(2);
  std::string sentence;
  for (Step step = 1; step < 100 && sentence.empty(); ++step) {
    try {
      run.step(step, 1e-2, small_micro_batches(step, 6));
    } catch (const StepUndone& undone) {
      sentence = std::string("undone: ") + undone.what();
    } catch (const PeerLost& lost) {
      sentence = lost.what();
    }
  }
  EXPECT_EQ(sentence,
            "rank 2 is lost: its process has ended, and what its plan updates on the way cannot be "
            "undone");
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
  int met = 0;
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
      ++met;
    }
    killer.join();
    EXPECT_EQ(list_plans(run, lost).size(), 1U) << "some have the old plan and some the new one";
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
      EXPECT_EQ(hash_of_those_left(run, replicas(1)), expected);
    }
  }
  tell_met(met);
}

}  // namespace
}  // namespace frazil
