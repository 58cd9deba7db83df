// Every wait ends within the world's deadline, on every rank with the same cause.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "tests/exec/communication/worlds.h"
#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

class CommunicatorDeadline : public WorldTest {};
IN_COMMON_WORLDS(CommunicatorDeadline);

using std::chrono::milliseconds;
using Kind = CommunicationFault::Kind;

CommunicatorOptions short_deadline() { return {.deadline = milliseconds(30)}; }

TEST_P(CommunicatorDeadline, OfAReceiveNamesWhoWaitedForWhatFromWhom) {
  const auto ranks = make_world(2, short_deadline());
  const Tag tag{.kind = MessageKind::kActivation, .stage = 1, .index = 3, .step = 17};
  const RankFailure failure = failure_of([&] { (void)ranks[1]->receive(0, tag); });
  EXPECT_EQ(
      failure.sentence,
      "rank 1 waited 30.000 ms for the activation of micro-batch 3 into stage 1 (step 17) from "
      "rank 0");
  ASSERT_TRUE(failure.fault);
  EXPECT_EQ(failure.fault->kind, Kind::kDeadline);
  EXPECT_EQ(failure.fault->rank, 1);
  EXPECT_EQ(failure.fault->peer, 0);
  EXPECT_EQ(failure.fault->step, Step{17});
}

TEST_P(CommunicatorDeadline, OfABarrierNamesTheMissingRank) {
  const auto ranks = make_world(2, short_deadline());
  const RankFailure failure = failure_of([&] { ranks[0]->barrier(); });
  EXPECT_EQ(failure.sentence, "rank 0 waited 30.000 ms at a barrier for rank 1");
  ASSERT_TRUE(failure.fault);
  EXPECT_EQ(failure.fault->step, std::nullopt);
}

// Rank 3 computes until all others have given up; then it is told the same.
TEST_P(CommunicatorDeadline, IsOneCauseForAllEvenForTheRankThatWasStuck) {
  const auto ranks = make_world(4, short_deadline());
  std::atomic<int> given_up{0};
  const auto failures = failures_of(ranks, [&](Communicator& self) {
    if (self.rank() == 3) {
      while (given_up < 3) std::this_thread::yield();
      self.send(0, {.index = 9}, {});
      return;
    }
    const RankFailure own = failure_of([&] {
      if (self.rank() == 2) self.barrier();
      (void)self.receive(3, {.index = self.rank()});
    });
    ++given_up;
    throw CommunicationError(own.fault.value());
  });
  EXPECT_NE(failures[0].sentence.find(" waited 30.000 ms "), std::string::npos);
  for (const RankFailure& failure : failures) {
    EXPECT_EQ(failure.sentence, failures[0].sentence);
    ASSERT_TRUE(failure.fault);
    EXPECT_EQ(failure.fault->kind, Kind::kDeadline);
    EXPECT_NE(failure.fault->rank, 3) << "who computes does not wait";
  }
}

TEST_P(CommunicatorDeadline, DoesNotPassForAMessageThatComesInTime) {
  const auto ranks = make_world(2, {.deadline = std::chrono::minutes(1)});
  const auto failures = failures_of(ranks, [](Communicator& self) {
    if (self.rank() == 1) return (void)self.receive(0, {});
    std::this_thread::sleep_for(milliseconds(20));
    self.send(1, {}, {});
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(2));
}

TEST_P(CommunicatorDeadline, StaysTheCauseWhateverFollows) {
  const auto ranks = make_world(2, short_deadline());
  const RankFailure first = failure_of([&] { ranks[0]->barrier(); });
  ranks[1]->abort("a later failure, caused by the first");
  EXPECT_EQ(failure_of([&] { ranks[1]->send(0, {}, {}); }).sentence, first.sentence);
}

TEST_P(CommunicatorDeadline, HasToLieAhead) {
  EXPECT_THROW(make_world(1, {.deadline = Duration{0}}), std::logic_error);
  EXPECT_THROW(make_world(1, {.deadline = Duration::max()}), std::logic_error);
}

}  // namespace
}  // namespace frazil
