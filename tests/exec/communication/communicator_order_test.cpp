// A rank receives messages of another rank within a lane in the order in which they are sent.

#include <gtest/gtest.h>

#include "tests/exec/communication/worlds.h"
#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

class CommunicatorOrder : public WorldTest {};
IN_COMMON_WORLDS(CommunicatorOrder);
class CommunicatorOrderByTag : public WorldTest {};
IN_WORLDS_BY_TAG(CommunicatorOrderByTag);

Tag activation(std::int32_t micro_batch) {
  return {.kind = MessageKind::kActivation, .stage = 1, .index = micro_batch, .step = 17};
}

TEST_P(CommunicatorOrder, AnotherOrderThanTheSendersIsNamedWithBothMessages) {
  const auto ranks = make_world(2);
  ranks[0]->send(1, activation(0), {});
  ranks[0]->send(1, activation(1), {});
  const RankFailure failure = failure_of([&] { (void)ranks[1]->receive(0, activation(1)); });
  EXPECT_EQ(failure.sentence,
            "rank 1 receives the activation of micro-batch 1 into stage 1 (step 17) from rank 0 "
            "before the activation of micro-batch 0 into stage 1 (step 17), which rank 0 sends "
            "first: a deadlock under ordered communication");
  ASSERT_TRUE(failure.fault);
  EXPECT_EQ(failure.fault->kind, CommunicationFault::Kind::kOrder);
  EXPECT_EQ(failure.fault->rank, 1);
  EXPECT_EQ(failure.fault->peer, 0);
  EXPECT_EQ(failure_of([&] { ranks[0]->barrier(); }).sentence, failure.sentence);
}

TEST_P(CommunicatorOrder, IsFoundInWhatARankSleepsForToo) {
  const auto ranks = make_world(2);
  const auto failures = failures_of(ranks, [](Communicator& self) {
    if (self.rank() == 1) return (void)self.receive(0, activation(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    self.send(1, activation(0), {});
    self.send(1, activation(1), {});
  });
  ASSERT_TRUE(failures[1].fault);
  EXPECT_EQ(failures[1].fault->kind, CommunicationFault::Kind::kOrder);
}

TEST_P(CommunicatorOrder, IsOfEachLaneSenderAndReceiverAlone) {
  const auto ranks = make_world(3);
  const std::vector<Tag> lanes = {
      {.kind = MessageKind::kActivation},    {.kind = MessageKind::kActivationGradient},
      {.kind = MessageKind::kGradientNodes}, {.kind = MessageKind::kSquaredNorms},
      {.kind = MessageKind::kProbe},         {.kind = MessageKind::kLayerState}};
  for (const int sender : {0, 1}) {
    for (const int receiver : {1, 2, 0}) {
      if (sender == receiver) continue;
      for (const Tag& lane : lanes)
        ranks[static_cast<std::size_t>(sender)]->send(receiver, lane, {});
    }
  }
  for (const int receiver : {0, 1, 2}) {
    for (const int sender : {1, 0}) {
      if (sender == receiver) continue;
      for (auto lane = lanes.rbegin(); lane != lanes.rend(); ++lane) {
        EXPECT_NO_THROW((void)ranks[static_cast<std::size_t>(receiver)]->receive(sender, *lane));
      }
    }
  }
}

TEST_P(CommunicatorOrder, OfAReductionIsOneLaneForItsNodesAndSums) {
  const auto ranks = make_world(2);
  ranks[0]->send(1, {.kind = MessageKind::kGradientNodes}, {});
  ranks[0]->send(1, {.kind = MessageKind::kGradientSum}, {});
  EXPECT_THROW((void)ranks[1]->receive(0, {.kind = MessageKind::kGradientSum}), CommunicationError);
}

TEST_P(CommunicatorOrderByTag, IsNotAskedForWithoutTheCheck) {
  const auto ranks = make_world(2, {.check_order = false});
  ranks[0]->send(1, activation(0), {});
  ranks[0]->send(1, activation(1), {});
  EXPECT_NO_THROW((void)ranks[1]->receive(0, activation(1)));
  EXPECT_NO_THROW((void)ranks[1]->receive(0, activation(0)));
}

TEST_P(CommunicatorOrderByTag, FindsAMessageThatNobodyHasReceived) {
  const auto ranks = make_world(2);
  ranks[0]->send(1, activation(0), {});
  ranks[0]->send(1, activation(1), {});
  EXPECT_NO_THROW((void)ranks[1]->receive(0, activation(0)));
  Tag next = activation(0);
  next.step = 18;
  ranks[0]->send(1, next, {});
  EXPECT_NE(failure_of([&] {
              (void)ranks[1]->receive(0, next);
            }).sentence.find("before the activation of micro-batch 1 into stage 1 (step 17)"),
            std::string::npos);
}

}  // namespace
}  // namespace frazil
