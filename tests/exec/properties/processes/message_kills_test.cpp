// Whoever is killed at any message of a transition or of a commit: the others have the old plan or
// the new one, wholly and all the same, no step is done by some alone, and the run ends with the
// bits of one that was never disturbed.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "tests/exec/support/process_run.h"
#include "tests/exec/support/small_vit.h"
#include "tests/exec/support/told_communicator.h"

namespace frazil {
namespace {

constexpr std::uint64_t kStartSeed = 7;
constexpr Step kStepsInAll = 4;
using Verdict = ControlRelay::Verdict;

OptimizerConfig plain_adamw() { return {.learning_rate = 1e-2}; }
ModelSpec killed_model() { return make_vit(small_config()); }

// Every process holds all layers in the old plan, and each layer is held twice in the new one, so
// that no loss of one process takes a layer along.
const PlanShape kOld{.cuts = {{}, {}}, .owned = {3, 3}};
const PlanShape kNew{.cuts = {{4}, {4}}, .owned = {3, 3}};
const PlanShape kRest{.cuts = {{}}, .owned = {6}};

std::uint64_t hash_undisturbed() {
  Run run(killed_model(), plain_adamw(), kStartSeed, 1);
  run.transition_to(make_small_plan(run.structure(), kRest));
  for (Step step = 0; step < kStepsInAll; ++step) {
    run.step(step, 1e-2, small_micro_batches(step, 6));
  }
  return run.weight_hash();
}

// The message at which somebody ends: the `nth` of that name between the leader and a member, from
// when the trap is armed.
struct Trap {
  int member = 1;
  std::string message;
  Verdict verdict = Verdict::kCutBefore;
  std::atomic<bool> is_armed{false};
  std::atomic<bool> is_sprung{false};

  Trap(int of, std::string at, Verdict how) : member(of), message(std::move(at)), verdict(how) {}
  Verdict judge(int of, const std::string& at) {
    if (!is_armed || of != member || at != message || is_sprung.exchange(true)) {
      return Verdict::kPass;
    }
    return verdict;
  }
};

ProcessShape shape_with(Trap& trap, int killed) {
  return {.process_of = {0, 1, 2, 3},
          .judge = [&trap](int member, const std::string& at) { return trap.judge(member, at); },
          .killed = killed};
}

void expect_whole(const LeftState& left, const ProcessRun& run) {
  EXPECT_TRUE(left.is_sound) << "a device holds what it should not, or not what it should";
  EXPECT_EQ(left.plan.has_value(), run.pool().has_plan());
  if (left.plan && run.pool().has_plan()) {
    EXPECT_EQ(*left.plan, run.plan());
  }
  EXPECT_EQ(left.holdings, run.pool().holdings());
}

const std::vector<std::string> kMessages{"prepare", "prepare done", "take", "take done",
                                         "adopt",   "adopt done",   "step", "ready",
                                         "commit",  "step done"};

std::string name_of(const std::string& message, Verdict verdict) {
  return std::string(verdict == Verdict::kCutBefore ? "before " : "after ") + message;
}

std::vector<std::pair<std::string, Verdict>> list_moments() {
  std::vector<std::pair<std::string, Verdict>> moments;
  for (const std::string& message : kMessages) {
    for (const Verdict verdict : {Verdict::kCutBefore, Verdict::kCutAfter}) {
      moments.emplace_back(message, verdict);
    }
  }
  return moments;
}

// How often each moment is tried.
int count_rounds() {
  const char* const rounds = std::getenv("FRAZIL_KILLS");
  return rounds ? std::atoi(rounds) : 1;
}

// Goes from the old plan to the new one before step 1, then on to the end, and after a loss by
// those who are left.
std::uint64_t go_through(ProcessRun& run, std::atomic<bool>& is_armed, int killed) {
  run.transition_to(make_small_plan(run.structure(), kOld));
  run.step(0, 1e-2, small_micro_batches(0, 6));
  is_armed = true;
  bool has_new = false;
  for (Step step = 1; step < kStepsInAll;) {
    try {
      if (!has_new) run.transition_to(make_small_plan(run.structure(), kNew));
      has_new = true;
      run.step(step, 1e-2, small_micro_batches(step, 6));
      ++step;
    } catch (const StepUndone&) {
      (void)run.regroup();
      EXPECT_TRUE(run.lost_layers().empty());
      for (const int member : run.processes()) {
        EXPECT_NE(member, killed);
        if (member == 0) continue;
        const LeftState left = state_of(run.member_pool(member));
        expect_whole(left, run);
        EXPECT_TRUE(left.updates.empty() || left.updates == std::set<std::int64_t>{step});
      }
      run.transition_to(make_small_plan(run.structure(), kRest));
      has_new = true;
    }
  }
  return run.weight_hash();
}

TEST(KillAtAMessage, OfAMemberLeavesOnePlanAndTheBitsOfAnUndisturbedRun) {
  const std::uint64_t expected = hash_undisturbed();
  // 1 holds layers and gives them; 2 takes some.
  for (int round = 0; round < count_rounds(); ++round) {
    for (const int killed : {1, 2}) {
      for (const auto& [message, verdict] : list_moments()) {
        SCOPED_TRACE("process " + std::to_string(killed) + " killed " + name_of(message, verdict));
        Trap trap(killed, message, verdict);
        ProcessRun run(killed_model(), plain_adamw(), kStartSeed, shape_with(trap, killed));
        EXPECT_EQ(go_through(run, trap.is_armed, killed), expected);
        EXPECT_TRUE(trap.is_sprung);
      }
    }
  }
}

// The process of a rank ends at the `nth` layer that the rank sends or receives.
struct LayerTrap {
  using Moment = ToldCommunicator::Moment;

  int rank = 0;
  Moment moment = Moment::kBeforeSend;
  int nth = 0;
  std::function<void()> kill = {};
  std::atomic<bool> is_armed{false};
  std::atomic<int> seen{0};

  LayerTrap(int of, Moment at, int number) : rank(of), moment(at), nth(number) {}
  void look(int of, const Tag& tag, Moment at) {
    if (!is_armed || of != rank || at != moment || tag.kind != MessageKind::kLayerState) return;
    if (seen++ == nth) kill();
  }
  ProcessShape shape() {
    return {.process_of = {0, 1, 2, 3},
            .between = [this](ProcessShape::Ranks hosts, const CommunicatorOptions&) {
              for (auto& host : hosts) {
                host = std::make_unique<ToldCommunicator>(
                    std::move(host),
                    [this](int of, const Tag& tag, Moment at) { look(of, tag, at); });
              }
              return hosts;
            }};
  }
};

TEST(KillAtAMessage, OfGiverAndTakerAtEachLayerLeavesTheBitsOfAnUndisturbedRun) {
  using Moment = ToldCommunicator::Moment;
  const std::uint64_t expected = hash_undisturbed();
  // 1 hands the first four layers over to 2.
  for (const auto& [killed, moment] : {std::pair(1, Moment::kBeforeSend),
                                       {1, Moment::kAfterSend},
                                       {2, Moment::kBeforeReceive},
                                       {2, Moment::kAfterReceive}}) {
    for (int layer = 0; layer < 4; ++layer) {
      SCOPED_TRACE("process " + std::to_string(killed) + " killed at layer " +
                   std::to_string(layer));
      LayerTrap trap(killed, moment, layer);
      ProcessRun run(killed_model(), plain_adamw(), kStartSeed, trap.shape());
      trap.kill = [&run, process = killed] { run.kill(process); };
      EXPECT_EQ(go_through(run, trap.is_armed, killed), expected);
      EXPECT_GT(trap.seen, layer);
    }
  }
}

// Nobody goes on without the leader; each member ends with one plan, and with whole steps.
TEST(KillAtAMessage, OfTheLeaderEndsEveryMemberWithAWholePlanAndWholeSteps) {
  for (const auto& [message, verdict] : list_moments()) {
    SCOPED_TRACE("leader killed " + name_of(message, verdict));
    Trap trap(2, message, verdict);
    ProcessRun run(killed_model(), plain_adamw(), kStartSeed, shape_with(trap, 0));
    run.transition_to(make_small_plan(run.structure(), kOld));
    run.step(0, 1e-2, small_micro_batches(0, 6));
    trap.is_armed = true;
    EXPECT_THROW(
        {
          run.transition_to(make_small_plan(run.structure(), kNew));
          run.step(1, 1e-2, small_micro_batches(1, 6));
          run.step(2, 1e-2, small_micro_batches(2, 6));
        },
        PeerLost);
    EXPECT_TRUE(trap.is_sprung);
    for (const auto& [process, left] : run.wait_for_members()) {
      SCOPED_TRACE("process " + std::to_string(process));
      EXPECT_TRUE(left.is_sound);
      EXPECT_LE(left.updates.size(), 1U) << "a torn step";
    }
  }
}

}  // namespace
}  // namespace frazil
