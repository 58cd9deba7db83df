// Threads play the ranks of a world over NCCL, whose part the fake plays.

#include "exec/communication/nccl_communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>

#include "exec/devices/steady_time.h"
#include "exec/reduction/ring_reduction.h"
#include "tests/exec/communication/fake_nccl_world.h"
#include "tests/exec/support/random_tensors.h"
#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using Fault = FakeNcclFault::Kind;
using Worlds = std::vector<std::unique_ptr<Communicator>>;

// What works takes far less, whatever else the machine does.
constexpr Duration kDeadline = std::chrono::seconds(2);

Tag activation_of(std::int32_t micro_batch) {
  return {.kind = MessageKind::kActivation, .stage = 1, .index = micro_batch, .step = 17};
}

class OverNccl : public FakeNcclTest {};

TEST_F(OverNccl, TensorsOfEveryTypeAndShapeArriveAsTheyWere) {
  const Worlds ranks = make_fake_nccl_communicators(2);
  const Tensors sent = {at::arange(24, at::kFloat).view({2, 3, 4}),
                        at::arange(6, at::kDouble).view({2, 3}).t(),
                        at::ones({3}, at::kBFloat16),
                        at::full({}, 7, at::kLong),
                        at::empty({0, 5}),
                        at::ones({2, 2}, at::kBool)};
  const auto failures = failures_of(ranks, [&](Communicator& self) {
    if (self.rank() == 0) return self.send(1, activation_of(0), sent);
    const Tensors came = self.receive(0, activation_of(0));
    ASSERT_EQ(came.size(), sent.size());
    for (std::size_t t = 0; t < sent.size(); ++t) {
      EXPECT_EQ(came[t].scalar_type(), sent[t].scalar_type());
      EXPECT_TRUE(came[t].equal(sent[t])) << t;
      EXPECT_FALSE(came[t].is_same(sent[t]));
    }
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(2));
  EXPECT_EQ(fake_nccl_counts().widest_group, 5) << "the tensors of a message are one group";
}

TEST_F(OverNccl, AMessageMayHaveNoTensors) {
  const Worlds ranks = make_fake_nccl_communicators(2);
  ranks[0]->send(1, activation_of(0), {});
  EXPECT_TRUE(ranks[1]->receive(0, activation_of(0)).empty());
  EXPECT_EQ(fake_nccl_counts().communicators, 0);
}

TEST_F(OverNccl, ASendNeverWaitsForItsReceiver) {
  const Worlds ranks = make_fake_nccl_communicators(2);
  for (int m = 0; m < 50; ++m) ranks[0]->send(1, activation_of(m), {at::full({4}, m)});
  // A receive that nobody answers yet holds up neither direction.
  const auto failures = failures_of(ranks, [](Communicator& self) {
    const Tag back{.kind = MessageKind::kActivationGradient, .index = 3};
    if (self.rank() == 0) {
      EXPECT_TRUE(self.receive(1, back).at(0).equal(at::ones({2})));
      return;
    }
    std::this_thread::sleep_for(milliseconds(5));
    self.send(0, back, {at::ones({2})});
    for (int m = 0; m < 50; ++m) {
      EXPECT_TRUE(self.receive(0, activation_of(m)).at(0).equal(at::full({4}, m)));
    }
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(2));
}

TEST_F(OverNccl, EveryLaneAndDirectionIsAConnectionOfItsOwn) {
  {
    const Worlds ranks = make_fake_nccl_communicators(2);
    const auto failures = failures_of(ranks, [](Communicator& self) {
      const int peer = 1 - self.rank();
      for (const MessageKind kind : {MessageKind::kActivation, MessageKind::kGradientNodes}) {
        self.send(peer, {.kind = kind}, {at::ones({1})});
        self.send(peer, {.kind = kind, .index = 1}, {at::ones({1})});
      }
      for (const MessageKind kind : {MessageKind::kGradientNodes, MessageKind::kActivation}) {
        (void)self.receive(peer, {.kind = kind});
        (void)self.receive(peer, {.kind = kind, .index = 1});
      }
    });
    EXPECT_EQ(sentences_of(failures), std::vector<std::string>(2));
    EXPECT_EQ(fake_nccl_counts().communicators, 2 * 4);
  }
  EXPECT_EQ(fake_nccl_counts().destroyed + fake_nccl_counts().aborted, 2 * 4);
}

TEST_F(OverNccl, ManyMessagesOfManyRanksAllArrive) {
  constexpr int kRanks = 4;
  constexpr int kMessages = 40;
  const Worlds ranks = make_fake_nccl_communicators(kRanks);
  std::atomic<int> wrong{0};
  const auto failures = failures_of(ranks, [&](Communicator& self) {
    std::mt19937_64 engine(static_cast<std::uint64_t>(self.rank()));
    // Every peer's messages in their order, the peers in any.
    std::vector<int> peers;
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer != self.rank()) peers.insert(peers.end(), kMessages, peer);
    }
    for (const bool sends : {true, false}) {
      std::shuffle(peers.begin(), peers.end(), engine);
      std::vector<int> next(kRanks, 0);
      for (const int peer : peers) {
        const int m = next[static_cast<std::size_t>(peer)]++;
        if (sends) {
          self.send(peer, activation_of(m), {at::full({3}, 1000 * self.rank() + m)});
        } else if (self.receive(peer, activation_of(m)).at(0)[1].item<int>() != 1000 * peer + m) {
          ++wrong;
        }
      }
    }
    self.barrier();
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(kRanks));
  EXPECT_EQ(wrong, 0);
}

TEST_F(OverNccl, RanksThatNcclDoesNotReachAreReachedByTheOtherWorld) {
  Worlds ranks = make_in_process_communicators(3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    // Ranks 0 and 1 share a process.
    std::vector<bool> peers = {rank == 2, rank == 2, rank != 2};
    ranks[rank] = over_nccl(
        std::move(ranks[rank]),
        {.table = &fake_nccl(), .gpu = static_cast<int>(rank), .peers = peers, .waits = {}});
  }
  const at::Tensor tensor = at::ones({4});
  ranks[0]->send(1, activation_of(0), {tensor});
  EXPECT_TRUE(ranks[1]->receive(0, activation_of(0)).at(0).is_same(tensor));
  EXPECT_EQ(fake_nccl_counts().communicators, 0);
  ranks[1]->send(2, activation_of(0), {tensor});
  EXPECT_TRUE(ranks[2]->receive(1, activation_of(0)).at(0).equal(tensor));
  EXPECT_EQ(fake_nccl_counts().communicators, 2);
}

TEST_F(OverNccl, AnOrderThatOnlyTagsCanServeIsRefused) {
  const Worlds ranks = make_fake_nccl_communicators(2, {.check_order = false});
  ranks[0]->send(1, activation_of(0), {at::ones({1})});
  ranks[0]->send(1, activation_of(1), {at::ones({1})});
  const RankFailure failure = failure_of([&] { (void)ranks[1]->receive(0, activation_of(1)); });
  EXPECT_EQ(failure.sentence,
            "rank 1 receives the activation of micro-batch 1 into stage 1 (step 17) from rank 0 as "
            "message 0 of its lane, which is sent as message 1: NCCL has no tags and matches "
            "messages in the order in which they are sent");
  ASSERT_TRUE(failure.fault);
  EXPECT_EQ(failure.fault->kind, CommunicationFault::Kind::kOrder);
  EXPECT_EQ(failure_of([&] { ranks[0]->barrier(); }).sentence, failure.sentence);
}

TEST_F(OverNccl, AnAbortEndsWaitsForNcclToo) {
  reset_fake_nccl({.kind = Fault::kHang, .gpu = 0, .group = 0});
  const Worlds ranks = make_fake_nccl_communicators(3);
  const auto failures = failures_of(ranks, [](Communicator& self) {
    if (self.rank() == 0) self.send(1, activation_of(0), {at::ones({1})});
    if (self.rank() == 1) (void)self.receive(0, activation_of(0));
    if (self.rank() != 2) return self.barrier();
    std::this_thread::sleep_for(milliseconds(20));
    self.abort("device 2 is out of memory");
    throw PeerLost("device 2 is out of memory");
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(3, "device 2 is out of memory"));
}

// A fault of NCCL is one cause for all ranks, names rank, message, step and peer, and leaves
// nothing behind.
class FaultsOfNccl : public OverNccl {
 protected:
  std::vector<RankFailure> run_with(const FakeNcclFault& fault, Duration deadline) {
    reset_fake_nccl(fault);
    const Worlds ranks = make_fake_nccl_communicators(3, {.deadline = deadline});
    return failures_of(ranks, [](Communicator& self) {
      for (int m = 0; m < 3; ++m) {
        if (self.rank() == 0) self.send(1, activation_of(m), {at::ones({8})});
        if (self.rank() == 1) (void)self.receive(0, activation_of(m));
      }
      // Whoever waits for nobody is told as well.
      while (self.rank() != 1) {
        self.check();
        std::this_thread::sleep_for(milliseconds(1));
      }
    });
  }

  void expect_all(const std::vector<RankFailure>& failures, const std::string& sentence) {
    EXPECT_EQ(sentences_of(failures), std::vector<std::string>(3, sentence));
  }
};

// NCCL does not say which send has failed, so the first one is named that is not known to be done.
TEST_F(FaultsOfNccl, AnAsynchronousErrorIsTold) {
  const auto failures =
      run_with({.kind = Fault::kError, .gpu = 0, .group = 1}, std::chrono::minutes(1));
  const auto sentence = [](int m) {
    return "rank 0 cannot send the activation of micro-batch " + std::to_string(m) +
           " into stage 1 (step 17) to rank 1 over NCCL: remote process exited or there was a "
           "network error";
  };
  EXPECT_TRUE(failures[0].sentence == sentence(0) || failures[0].sentence == sentence(1));
  expect_all(failures, failures[0].sentence);
  expect_all(run_with({.kind = Fault::kError, .gpu = 1, .group = 2}, std::chrono::minutes(1)),
             "rank 1 cannot receive the activation of micro-batch 2 into stage 1 (step 17) from "
             "rank 0 over NCCL: remote process exited or there was a network error");
}

TEST_F(FaultsOfNccl, AStreamThatHangsIsWaitedForUntilTheDeadline) {
  expect_all(run_with({.kind = Fault::kHang, .gpu = 0, .group = 1}, kDeadline),
             "rank 1 waited 2.000 s for the activation of micro-batch 1 into stage 1 (step 17) "
             "over NCCL from rank 0");
}

TEST_F(FaultsOfNccl, ACommunicatorThatNeverComesAboutIsWaitedForUntilTheDeadline) {
  expect_all(run_with({.kind = Fault::kNeverReady, .gpu = 0}, kDeadline),
             "rank 1 waited 2.000 s for the activation of micro-batch 0 into stage 1 (step 17) "
             "over NCCL from rank 0");
}

TEST_F(FaultsOfNccl, RanksThatClaimOnePlaceAreTold) {
  const auto failures = run_with({.kind = Fault::kWrongRank, .gpu = 1}, std::chrono::minutes(1));
  for (const RankFailure& failure : failures) {
    EXPECT_EQ(failure.sentence, failures[0].sentence);
    EXPECT_NE(failure.sentence.find(" over NCCL: invalid argument (two ranks say that they "
                                    "are rank 0)"),
              std::string::npos)
        << failure.sentence;
  }
}

// A call of NCCL that does not return holds its thread for ever; neither the ranks nor the end of
// the world wait for it.
TEST_F(FaultsOfNccl, ACallThatDoesNotReturnIsLeftToItself) {
  const SteadyTime start = std::chrono::steady_clock::now();
  const auto failures = run_with({.kind = Fault::kStuckCall, .gpu = 0, .group = 1}, kDeadline);
  EXPECT_LT(since(start), std::chrono::seconds(30));
  expect_all(failures,
             "rank 1 waited 2.000 s for the activation of micro-batch 1 into stage 1 (step 17) "
             "over NCCL from rank 0");
  release_fake_nccl();
  for (int i = 0; i < 5000 && fake_nccl_counts().live_ends > 0; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST_F(OverNccl, AGroupAddsUpInOneCall) {
  const Worlds ranks = make_fake_nccl_communicators(4);
  const auto failures = failures_of(ranks, [](Communicator& self) {
    const Tag tag{.kind = MessageKind::kGradientSum, .index = 2, .step = 1};
    for (int round = 1; round < 4; ++round) {
      for (const std::vector<int>& group : {std::vector<int>{1, 3}, {0, 1, 2, 3}}) {
        if (std::find(group.begin(), group.end(), self.rank()) == group.end()) continue;
        const at::Tensor sum = at::full({5}, (self.rank() + 1) * round);
        ASSERT_TRUE(self.sum_in_group(sum, group, tag));
        EXPECT_TRUE(sum.eq((group.size() == 2 ? 6 : 10) * round).all().item<bool>());
      }
    }
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(4));
  EXPECT_EQ(fake_nccl_counts().communicators, 2 + 4) << "one for each group, kept";
}

TEST_F(OverNccl, TheReductionOfModeFastIsAnAllReduce) {
  const std::vector<DeviceId> owners = {DeviceId{0}, DeviceId{1}, DeviceId{2}};
  const Tensors like = {at::empty({3, 5}), at::empty({7})};
  const auto reduce = [&](Communicator& self) {
    const Tensors own = {at::full({3, 5}, self.rank() + 1.5), at::full({7}, self.rank() - 3.0)};
    return reduce_in_ring(own, like, owners, self, {.index = 4, .step = 2});
  };
  const Worlds ranks = make_fake_nccl_communicators(3);
  const auto failures = failures_of(ranks, [&](Communicator& self) {
    const Tensors sums = reduce(self);
    EXPECT_TRUE(sums.at(0).equal(at::full({3, 5}, 7.5)));
    EXPECT_TRUE(sums.at(1).equal(at::full({7}, -6.0)));
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(3));
  EXPECT_EQ(fake_nccl_counts().all_reduces, 3);
}

TEST_F(OverNccl, WorldsThatComeAndGoLeaveNoThread) {
  const auto threads = count_threads();
  for (int world = 0; world < 20; ++world) {
    const Worlds ranks = make_fake_nccl_communicators(2);
    const auto failures = failures_of(ranks, [&](Communicator& self) {
      if (self.rank() == 0) self.send(1, activation_of(0), {at::ones({8})});
      if (self.rank() == 1) (void)self.receive(0, activation_of(0));
      if (self.rank() == 1 && world % 2 == 1) self.abort("enough");
    });
  }
  EXPECT_TRUE(threads_come_down_to(threads));
  EXPECT_EQ(fake_nccl_counts().communicators, 40);
}

}  // namespace
}  // namespace frazil
