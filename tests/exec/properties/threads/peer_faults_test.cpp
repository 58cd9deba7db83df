// A rank fails, leaves without a word or stops at one of the messages of a step: at each kind of
// message, in the middle of training. Every rank ends before its deadline with one cause, and
// nothing is left.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "exec/communication/in_process_communicator.h"
#include "exec/devices/workers.h"
#include "exec/run/executor.h"
#include "tests/exec/support/changing_rate.h"
#include "tests/exec/support/failing_model.h"
#include "tests/exec/support/rank_failures.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Conduct { kFails, kLeaves, kStops };

// A rank that leaves ends with this, and nobody is told. It is a PeerLost, so that no place is put
// before it.
struct Gone : PeerLost {
  Gone() : PeerLost("gone") {}
};

// Behaves badly at the first message of a kind, sent or received, in the failing step.
class FaultyCommunicator final : public Communicator {
 public:
  FaultyCommunicator(std::unique_ptr<Communicator> inner, MessageKind kind, Conduct conduct,
                     const std::atomic<bool>& told)
      : inner_(std::move(inner)), kind_(kind), conduct_(conduct), told_(told) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void send(int peer, const Tag& tag, Tensors tensors) override {
    behave(tag);
    inner_->send(peer, tag, std::move(tensors));
  }
  Tensors receive(int peer, const Tag& tag) override {
    behave(tag);
    return inner_->receive(peer, tag);
  }
  void barrier() override { inner_->barrier(); }
  void abort(const std::string& reason) override { inner_->abort(reason); }
  void finish() override { inner_->finish(); }
  void leave() override { inner_->leave(); }

 private:
  void behave(const Tag& tag) {
    if (tag.kind != kind_ || tag.step != kFailingStep) return;
    switch (conduct_) {
      case Conduct::kFails:
        throw std::runtime_error("the link is down");
      case Conduct::kLeaves:
        inner_->leave();
        throw Gone();
      case Conduct::kStops:
        while (!told_) std::this_thread::sleep_for(milliseconds(1));
    }
  }

  std::unique_ptr<Communicator> inner_;
  MessageKind kind_;
  Conduct conduct_;
  const std::atomic<bool>& told_;
};

struct PeerFaultCase {
  int rank = 0;
  MessageKind kind = MessageKind::kActivation;
  std::string action;  // in which it meets the message
  ReductionMode mode = ReductionMode::kExact;
};

// Two replicas of two stages that clip: ranks 0 and 2 hold stage 0, ranks 1 and 3 stage 1. Within a
// step the ranks send and receive every kind of message but that of tied parameters, in either
// mode.
class World {
 public:
  World(const PeerFaultCase& one, Conduct conduct, Duration deadline, MetTensors& met)
      : model_(make_failing(
            FaultPlace::kForward, [] {}, met)),
        program_(make_world_program(model_, one.mode)),
        communicators_(make_in_process_communicators(kRanks, {.deadline = deadline})),
        workers_(kRanks) {
    auto& communicator = communicators_[static_cast<std::size_t>(one.rank)];
    communicator =
        std::make_unique<FaultyCommunicator>(std::move(communicator), one.kind, conduct, told_);
    for (int rank = 0; rank < kRanks; ++rank) {
      recorders_.emplace_back(DeviceId{rank}, SteadyTime{});
      for (int l = rank % 2 * 4; l < rank % 2 * 4 + 4; ++l) {
        states_[static_cast<std::size_t>(rank)][LayerId{l}] =
            make_initial_state(model_, LayerId{l}, 7);
        set_active(states_[static_cast<std::size_t>(rank)][LayerId{l}], true);
      }
    }
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      executors_.push_back(std::make_unique<Executor>(
          ExecutionContext{model_, optimizer_, program_, DeviceId{rank}, states_[rank],
                           *communicators_[rank], recorders_[rank], measurement_}));
    }
  }

  // Returns what each rank ends the step with, and then what is thrown for all.
  std::vector<RankFailure> step(Step step) {
    const std::vector<Samples> micro_batches = small_micro_batches(step, kMicroBatches);
    const StepInput input{step, 7, changing_rate(optimizer_, step, 3), &micro_batches,
                          kMicroBatches * kSmallMicroBatch};
    std::vector<RankFailure> failures(kRanks);
    failures.push_back(failure_of([&] {
      workers_.run(
          [&](DeviceId rank) {
            std::exception_ptr failure;
            failures[rank.index()] = failure_of([&] {
              try {
                (void)executors_[rank.index()]->run_step(input);
              } catch (const Gone&) {  // not even its worker knows
              } catch (...) {
                failure = std::current_exception();
                throw;
              }
            });
            if (failure) std::rethrow_exception(failure);
          },
          [&](const std::string& reason) {
            communicators_[0]->abort(reason);
            told_ = true;
          });
    }));
    return failures;
  }

  static constexpr int kRanks = 4;
  static constexpr int kMicroBatches = 4;

 private:
  static StepProgram make_world_program(const ModelSpec& model, ReductionMode mode) {
    const ModelProfile structure = make_structure(model, 2);
    const PlanShape shape{.micro_batches = kMicroBatches, .cuts = {{4}, {4}}, .owned = {2, 2}};
    Plan plan = make_small_plan(structure, shape);
    plan.reduction = mode;
    return make_program(plan, structure, kRanks, /*clip=*/true);
  }

  std::atomic<bool> told_{false};
  ModelSpec model_;
  OptimizerConfig optimizer_{.learning_rate = 1e-2, .clip_norm = 0.5};
  Measurement measurement_;
  StepProgram program_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<DeviceState> states_{kRanks};
  std::vector<Recorder> recorders_;
  std::vector<std::unique_ptr<Executor>> executors_;
  Workers workers_;
};

const std::vector<PeerFaultCase>& cases() {
  static const std::vector<PeerFaultCase> all = {
      {0, MessageKind::kActivation, "0SEND_F0"},
      {1, MessageKind::kActivation, "1RECV_F0"},
      {3, MessageKind::kActivationGradient, "1:1SEND_B2"},
      {2, MessageKind::kActivationGradient, "1:0RECV_B2"},
      {3, MessageKind::kGradientNodes, "1:1REDUCE_GRAD"},
      {0, MessageKind::kGradientSum, "0REDUCE_GRAD"},
      {2, MessageKind::kGradientNodes, "1:0REDUCE_GRAD", ReductionMode::kFast},
      {1, MessageKind::kGradientSum, "1REDUCE_GRAD", ReductionMode::kFast},
      {3, MessageKind::kSquaredNorms, "BARRIER"},
      {0, MessageKind::kSquaredNorms, "BARRIER"}};
  return all;
}

struct End {
  std::vector<RankFailure> ranks;
  RankFailure thrown;
};

End end_of(const PeerFaultCase& one, Conduct conduct, Duration deadline) {
  MetTensors met;
  End end;
  {
    World world(one, conduct, deadline, met);
    for (Step step = 0; step < kFailingStep; ++step) {
      EXPECT_EQ(sentences_of(world.step(step)),
                std::vector<std::string>(World::kRanks + 1, std::string()));
    }
    end.ranks = world.step(kFailingStep);
    end.thrown = end.ranks.back();
    end.ranks.pop_back();
  }
  EXPECT_GT(met.count(), 0U);
  EXPECT_TRUE(met.all_gone()) << "a tensor is left";
  return end;
}

class PeerFaults : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(before_.change(), ""); }

 private:
  Surroundings before_;
};

constexpr auto kLongDeadline = seconds(60);

TEST_F(PeerFaults, AFaultAtAMessageIsTheCauseOfAllRanks) {
  for (const PeerFaultCase& one : cases()) {
    SCOPED_TRACE("rank " + std::to_string(one.rank) + ", " + one.action);
    const auto begin = std::chrono::steady_clock::now();
    const End end = end_of(one, Conduct::kFails, kLongDeadline);
    const std::string cause = "rank " + std::to_string(one.rank) + ", step 2, action " +
                              one.action + ": the link is down";
    EXPECT_EQ(end.thrown.sentence, cause);
    EXPECT_EQ(sentences_of(end.ranks), std::vector<std::string>(World::kRanks, cause));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kLongDeadline);
  }
}

// The first rank that waits for the one that left tells all that stay. A rank that leaves has
// nothing to say.
TEST_F(PeerFaults, APeerThatLeavesIsMissedAtOnceByAllOthers) {
  for (const PeerFaultCase& one : cases()) {
    SCOPED_TRACE("rank " + std::to_string(one.rank) + ", " + one.action);
    const auto begin = std::chrono::steady_clock::now();
    const End end = end_of(one, Conduct::kLeaves, kLongDeadline);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kLongDeadline);
    ASSERT_TRUE(end.thrown.fault) << end.thrown.sentence;
    EXPECT_EQ(end.thrown.fault->kind, CommunicationFault::Kind::kPeerLeft);
    EXPECT_EQ(end.thrown.fault->step, kFailingStep);
    const std::string lost = "from rank " + std::to_string(one.rank) + ", which has left";
    EXPECT_NE(end.thrown.sentence.find(lost), std::string::npos) << end.thrown.sentence;
    EXPECT_NE(end.thrown.sentence.find("(step 2)"), std::string::npos) << end.thrown.sentence;
    std::vector<std::string> expected(World::kRanks, end.thrown.sentence);
    expected[static_cast<std::size_t>(one.rank)].clear();
    EXPECT_EQ(sentences_of(end.ranks), expected);
  }
}

TEST_F(PeerFaults, ARankThatStopsIsFoundAtTheDeadline) {
  (void)end_of(cases().front(), Conduct::kFails, kLongDeadline);  // torch's first use takes longer
  for (const PeerFaultCase& one : {cases()[1], cases()[4], cases()[6], cases()[8]}) {
    SCOPED_TRACE("rank " + std::to_string(one.rank) + ", " + one.action);
    const End end = end_of(one, Conduct::kStops, seconds(3));
    ASSERT_TRUE(end.thrown.fault) << end.thrown.sentence;
    EXPECT_EQ(end.thrown.fault->kind, CommunicationFault::Kind::kDeadline);
    EXPECT_EQ(end.thrown.fault->step, kFailingStep);
    EXPECT_NE(end.thrown.sentence.find("waited 3.000 s for "), std::string::npos);
    const std::string stopped = "from rank " + std::to_string(one.rank);
    const std::string& sentence = end.thrown.sentence;
    EXPECT_EQ(sentence.rfind(stopped), sentence.size() - stopped.size()) << sentence;
    EXPECT_EQ(sentences_of(end.ranks), std::vector<std::string>(World::kRanks, sentence));
  }
}

}  // namespace
}  // namespace frazil
