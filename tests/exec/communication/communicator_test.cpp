// What every world does that exchanges messages. Threads play its ranks.

#include "exec/communication/communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>

#include "tests/exec/communication/worlds.h"
#include "tests/exec/support/random_tensors.h"

namespace frazil {
namespace {

class Communication : public WorldTest {};
IN_COMMON_WORLDS(Communication);
class CommunicatorByTag : public WorldTest {};
IN_WORLDS_BY_TAG(CommunicatorByTag);

Tag tag(std::int32_t index, Step step = 0) { return {.index = index, .step = step}; }

// Returns the sentence of the PeerLost that `call` throws.
template <class Call>
std::string lost_reason(Call call) {
  try {
    call();
  } catch (const PeerLost& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void sleep_for_a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

TEST_P(Communication, RanksKnowTheirPlace) {
  const auto ranks = make_world(3);
  ASSERT_EQ(ranks.size(), 3U);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)]->rank(), rank);
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)]->size(), 3);
  }
}

TEST_P(CommunicatorByTag, MessagesAreTakenByTagInAnyOrderWhereOrderIsNotChecked) {
  const auto ranks = make_world(3, {.check_order = false});
  const std::vector<Tag> tags = {
      {.kind = MessageKind::kActivation},
      {.kind = MessageKind::kActivationGradient},
      {.kind = MessageKind::kActivation, .pipeline = 1},
      {.kind = MessageKind::kActivation, .stage = 1},
      {.kind = MessageKind::kActivation, .index = 1},
      {.kind = MessageKind::kActivation, .step = 1},
  };
  for (std::size_t i = 0; i < tags.size(); ++i) {
    ranks[0]->send(2, tags[i], {at::full({1}, static_cast<double>(i))});
    ranks[1]->send(2, tags[i], {at::full({1}, static_cast<double>(i) + 100)});
  }
  for (std::size_t i = tags.size(); i-- > 0;) {
    EXPECT_EQ(ranks[2]->receive(0, tags[i]).at(0).item<float>(), static_cast<float>(i));
    EXPECT_EQ(ranks[2]->receive(1, tags[i]).at(0).item<float>(), static_cast<float>(i) + 100);
  }
}

TEST(InProcess, ATagNamesOneMessageAtATime) {
  const auto ranks = make_in_process_communicators(2);
  ranks[0]->send(1, tag(0), {});
  EXPECT_THROW(ranks[0]->send(1, tag(0), {}), std::logic_error);
}

TEST(InProcess, TensorsAreHandedOverNotCopied) {
  const auto ranks = make_in_process_communicators(2);
  Tensors tensors{at::ones({8}), at::zeros({3})};
  const void* first = tensors[0].const_data_ptr();
  const void* second = tensors[1].const_data_ptr();
  ranks[0]->send(1, tag(0), std::move(tensors));
  const Tensors received = ranks[1]->receive(0, tag(0));
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(received[0].const_data_ptr(), first);
  EXPECT_EQ(received[1].const_data_ptr(), second);
}

TEST_P(Communication, AMessageMayBeEmptyAndItsTagUsedAgain) {
  const auto ranks = make_world(2);
  for (int round = 0; round < 2; ++round) {
    ranks[0]->send(1, tag(0), {});
    EXPECT_TRUE(ranks[1]->receive(0, tag(0)).empty());
  }
  EXPECT_THROW(ranks[0]->send(0, tag(1), {}), std::logic_error);
}

// Every rank sends to every other in an order of its own and receives in another one.
TEST_P(CommunicatorByTag, ManyMessagesUnderContentionAllArrive) {
  constexpr int kRanks = 5;
  constexpr int kMessages = 300;
  const auto ranks = make_world(kRanks, {.check_order = false});
  std::atomic<int> wrong{0};
  run_ranks(ranks, [&](Communicator& self) {
    std::vector<std::pair<int, int>> places;
    for (int peer = 0; peer < kRanks; ++peer) {
      for (int i = 0; peer != self.rank() && i < kMessages; ++i) places.emplace_back(peer, i);
    }
    std::mt19937_64 engine(static_cast<std::uint64_t>(self.rank()));
    std::shuffle(places.begin(), places.end(), engine);
    for (const auto& [peer, i] : places) {
      self.send(peer, tag(i), {at::scalar_tensor(1000 * self.rank() + i)});
    }
    std::shuffle(places.begin(), places.end(), engine);
    for (const auto& [peer, i] : places) {
      const Tensors got = self.receive(peer, tag(i));
      if (got.at(0).item<int>() != 1000 * peer + i) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(Communication, ABarrierLetsNobodyThroughBeforeTheLastHasCome) {
  constexpr int kRanks = 4;
  constexpr int kRounds = 200;
  const auto ranks = make_world(kRanks);
  std::atomic<int> arrived{0};
  std::atomic<int> early{0};
  run_ranks(ranks, [&](Communicator& self) {
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      self.barrier();
      if (arrived < round * kRanks) ++early;
      self.barrier();
    }
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(arrived, kRanks * kRounds);
}

TEST_P(Communication, AbortWakesWhoWaitsForAMessage) {
  const auto ranks = make_world(3);
  std::vector<std::string> reasons(3);
  run_ranks(ranks, [&](Communicator& self) {
    if (self.rank() == 2) {
      sleep_for_a_moment();
      self.abort("device 2 is out of memory");
      return;
    }
    reasons[static_cast<std::size_t>(self.rank())] =
        lost_reason([&] { (void)self.receive(2, tag(0)); });
  });
  EXPECT_EQ(reasons[0], "device 2 is out of memory");
  EXPECT_EQ(reasons[1], "device 2 is out of memory");
}

TEST_P(Communication, AbortWakesWhoWaitsAtABarrier) {
  const auto ranks = make_world(3);
  std::vector<std::string> reasons(3);
  run_ranks(ranks, [&](Communicator& self) {
    if (self.rank() == 2) {
      sleep_for_a_moment();
      self.abort("device 2 is gone");
      return;
    }
    reasons[static_cast<std::size_t>(self.rank())] = lost_reason([&] { self.barrier(); });
  });
  EXPECT_EQ(reasons[0], "device 2 is gone");
  EXPECT_EQ(reasons[1], "device 2 is gone");
}

TEST_P(Communication, TheFirstReasonOfAnAbortStays) {
  const auto ranks = make_world(2);
  ranks[0]->abort("first");
  ranks[1]->abort("second");
  EXPECT_EQ(lost_reason([&] { (void)ranks[1]->receive(0, tag(0)); }), "first");
  EXPECT_EQ(lost_reason([&] { ranks[0]->barrier(); }), "first");
}

}  // namespace
}  // namespace frazil
