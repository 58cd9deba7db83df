// The graph says who waits for whom, and calls a wait dead only when it is.

#include <gtest/gtest.h>

#include "exec/communication/wait_graph.h"
#include "exec/links/message_tag.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using Kind = CommunicationFault::Kind;

Tag between(MessageKind kind, std::int32_t micro_batch, std::int32_t from, std::int32_t to) {
  return {.kind = kind, .from = from, .stage = to, .index = micro_batch, .step = 17};
}

Tag activation(std::int32_t micro_batch, std::int32_t stage) {
  return between(MessageKind::kActivation, micro_batch, stage - 1, stage);
}

Tag gradient(std::int32_t micro_batch, std::int32_t stage) {
  return between(MessageKind::kActivationGradient, micro_batch, stage + 1, stage);
}

WaitGraph running(std::size_t ranks) {
  return {.waits = std::vector<std::optional<Wait>>(ranks),
          .finished = std::vector<std::int64_t>(ranks, 0)};
}

TEST(MessageTag, SaysWhatTravelsAndWhere) {
  EXPECT_EQ(to_text(activation(3, 1)), "the activation of micro-batch 3 into stage 1 (step 17)");
  EXPECT_EQ(to_text(between(MessageKind::kActivation, 3, 0, 2)),
            "the activation of micro-batch 3 from stage 0 into stage 2 (step 17)");
  EXPECT_EQ(to_text(gradient(3, 0)), "the gradient of micro-batch 3 into stage 0 (step 17)");
  EXPECT_EQ(to_text(between(MessageKind::kActivationGradient, 3, 4, 1)),
            "the gradient of micro-batch 3 from stage 4 into stage 1 (step 17)");
  Tag second = activation(3, 1);
  second.pipeline = 1;
  EXPECT_EQ(to_text(second),
            "the activation of micro-batch 3 into stage 1 of pipeline 1 (step 17)");
  EXPECT_EQ(to_text(Tag{.kind = MessageKind::kGradientNodes, .index = 4}),
            "the partial gradients of the layers from 4 on (step 0)");
  EXPECT_EQ(to_text(Tag{.kind = MessageKind::kGradientSum, .from = 2, .index = 4}),
            "the summed gradients of the layers from 4 on, round 2 (step 0)");
  EXPECT_EQ(to_text(Tag{.kind = MessageKind::kTiedSum, .index = 4}),
            "the gradients of the tied layer 4 (step 0)");
  EXPECT_EQ(to_text(Tag{.kind = MessageKind::kSquaredNorms}), "the squared norms (step 0)");
  EXPECT_EQ(to_text(Tag{.kind = MessageKind::kSquaredNorms, .index = 1}),
            "the clip scale (step 0)");
}

TEST(WaitGraph, AnExpiryNamesRankPeerMessageAndStep) {
  WaitGraph graph = running(2);
  graph.waits[1] = Wait{activation(3, 1), {0}};
  const CommunicationFault fault = make_expiry(graph, 1, milliseconds(2000));
  EXPECT_EQ(fault.sentence,
            "rank 1 waited 2.000 s for the activation of micro-batch 3 into stage 1 (step 17) from "
            "rank 0");
  EXPECT_EQ(fault.kind, Kind::kDeadline);
  EXPECT_EQ(fault.rank, 1);
  EXPECT_EQ(fault.peer, 0);
  EXPECT_EQ(fault.step, Step{17});
  EXPECT_EQ(fault.awaited, "the activation of micro-batch 3 into stage 1 (step 17)");
}

TEST(WaitGraph, AnExpiryNamesTheRankThatRunsBehindOthersThatWait) {
  WaitGraph graph = running(3);
  graph.waits[2] = Wait{activation(3, 2), {1}};
  graph.waits[1] = Wait{activation(3, 1), {0}};
  EXPECT_EQ(
      make_expiry(graph, 2, milliseconds(50)).sentence,
      "rank 2 waited 50.000 ms for the activation of micro-batch 3 into stage 2 (step 17) from "
      "rank 1, which waits for the activation of micro-batch 3 into stage 1 (step 17) from "
      "rank 0");
}

TEST(WaitGraph, AnExpiryAtABarrierNamesWhoIsMissing) {
  WaitGraph graph = running(3);
  graph.waits[0] = Wait{std::nullopt, {1, 2}};
  graph.waits[1] = Wait{gradient(0, 0), {2}};
  const CommunicationFault fault = make_expiry(graph, 0, milliseconds(50));
  EXPECT_EQ(fault.sentence,
            "rank 0 waited 50.000 ms at a barrier for rank 1, which waits for the gradient of "
            "micro-batch 0 into stage 0 (step 17) from rank 2");
  EXPECT_EQ(fault.step, std::nullopt);
  EXPECT_EQ(fault.awaited, "a barrier");
}

TEST(WaitGraph, ARingIsDeadAndNamed) {
  WaitGraph graph = running(3);
  graph.waits[0] = Wait{gradient(0, 0), {1}};
  graph.waits[1] = Wait{gradient(0, 1), {2}};
  EXPECT_FALSE(find_dead_wait(graph, 0));
  graph.waits[2] = Wait{std::nullopt, {0, 1}};
  const auto fault = find_dead_wait(graph, 2);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Kind::kDeadlock);
  EXPECT_EQ(fault->sentence,
            "rank 2 waits at a barrier for rank 0, which waits for the gradient of micro-batch 0 "
            "into stage 0 (step 17) from rank 1, which waits for the gradient of micro-batch 0 "
            "into stage 1 (step 17) from rank 2");
}

TEST(WaitGraph, ARingElsewhereIsItsOwnRanksToTell) {
  WaitGraph graph = running(3);
  graph.waits[0] = Wait{gradient(0, 0), {1}};
  graph.waits[1] = Wait{activation(0, 1), {0}};
  graph.waits[2] = Wait{activation(0, 2), {1}};
  EXPECT_FALSE(find_dead_wait(graph, 2));
  EXPECT_TRUE(find_dead_wait(graph, 0));
  EXPECT_TRUE(find_dead_wait(graph, 1));
}

TEST(WaitGraph, AWaitForARankThatHasDoneItsPartOfTheSameJobIsDead) {
  WaitGraph graph = running(2);
  graph.waits[1] = Wait{activation(3, 1), {0}};
  graph.finished = {4, 4};
  EXPECT_FALSE(find_dead_wait(graph, 1)) << "in the next job it may still send";
  graph.finished = {4, 5};
  EXPECT_FALSE(find_dead_wait(graph, 1)) << "it is behind";
  graph.finished = {5, 4};
  const auto fault = find_dead_wait(graph, 1);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Kind::kPeerLeft);
  EXPECT_EQ(fault->sentence,
            "rank 1 waits for the activation of micro-batch 3 into stage 1 (step 17) from rank 0, "
            "which has ended its part");
  graph.waits[1] = Wait{std::nullopt, {0}};
  graph.finished[0] = kEveryJob;
  EXPECT_EQ(find_dead_wait(graph, 1)->sentence,
            "rank 1 waits at a barrier for rank 0, which has left");
}

TEST(WaitGraph, NobodyIsToBlameWhileTheAwaitedRankRuns) {
  WaitGraph graph = running(3);
  graph.waits[0] = Wait{std::nullopt, {1, 2}};
  graph.waits[1] = Wait{activation(0, 1), {2}};
  for (int rank = 0; rank < 3; ++rank) EXPECT_FALSE(find_dead_wait(graph, rank)) << rank;
}

}  // namespace
}  // namespace frazil
