// Every later call of every rank throws after an abort, whatever it is and however many came
// before, and nothing is kept: no message, no thread, no file.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/exec/communication/worlds.h"
#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

class CommunicatorAbort : public WorldTest {};
IN_COMMON_WORLDS(CommunicatorAbort);

TEST_P(CommunicatorAbort, ABarrierAfterAnAbortLetsNobodyThrough) {
  const auto ranks = make_world(2);
  ranks[0]->abort("gone");
  EXPECT_THROW(ranks[0]->barrier(), PeerLost);
  EXPECT_THROW(ranks[1]->barrier(), PeerLost);
  EXPECT_THROW(ranks[1]->barrier(), PeerLost);
}

// Waits for at most ten seconds where news take a moment to come.
template <class Condition>
bool holds_soon(bool at_once, const Condition& condition) {
  for (int i = 0; !at_once && i < 10'000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

// Returns when `self` has heard that the world has ended.
void hear_of_the_end(Communicator& self, bool at_once) {
  std::int32_t index = 1000;
  EXPECT_TRUE(at_once || holds_soon(false, [&] {
                return !failure_of([&] { self.send(0, {.index = ++index}, {}); }).sentence.empty();
              }));
}

TEST_P(CommunicatorAbort, SendAfterAnAbortThrows) {
  const auto ranks = make_world(2);
  ranks[0]->abort("gone");
  hear_of_the_end(*ranks[1], GetParam().comes_at_once);
  EXPECT_THROW(ranks[1]->send(0, {}, {}), PeerLost);
}

TEST_P(CommunicatorAbort, ReceiveAfterAnAbortThrowsEvenIfTheMessageIsThere) {
  const auto ranks = make_world(2);
  ranks[0]->send(1, {}, {});
  ranks[0]->abort("gone");
  hear_of_the_end(*ranks[1], GetParam().comes_at_once);
  EXPECT_THROW((void)ranks[1]->receive(0, {}), PeerLost);
}

using WeakTensor = c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>;

WeakTensor send_one(Communicator& from, int to, std::int32_t index) {
  at::Tensor tensor = at::ones({16});
  WeakTensor weak(tensor.getIntrusivePtr());
  (void)failure_of([&] { from.send(to, {.index = index}, {std::move(tensor)}); });
  return weak;
}

TEST_P(CommunicatorAbort, AnAbortFreesWhatNobodyHasReceivedAndWhatIsSentLater) {
  const auto ranks = make_world(2);
  const WeakTensor before = send_one(*ranks[0], 1, 0);
  const bool at_once = GetParam().comes_at_once && !GetParam().holds_sent;
  if (GetParam().comes_at_once) {
    EXPECT_EQ(before.expired(), !GetParam().shares_memory && !GetParam().holds_sent)
        << "small messages are copied";
  }
  ranks[1]->abort("gone");
  if (!GetParam().holds_sent) {
    EXPECT_TRUE(holds_soon(at_once, [&] { return before.expired(); }));
  }
  const WeakTensor after = send_one(*ranks[0], 1, 1);
  EXPECT_TRUE(holds_soon(at_once, [&] { return after.expired(); }));
  EXPECT_TRUE(holds_soon(at_once, [&] { return before.expired(); }));
}

TEST_P(CommunicatorAbort, AWorldThatEndsFreesWhatNobodyHasReceived) {
  auto ranks = make_world(2);
  const WeakTensor weak = send_one(*ranks[0], 1, 0);
  ranks.clear();
  EXPECT_TRUE(weak.expired());
}

TEST_P(CommunicatorAbort, FinishingAndLeavingAnAbortedWorldIsAllowed) {
  const auto ranks = make_world(2);
  ranks[0]->abort("gone");
  EXPECT_NO_THROW(ranks[1]->finish());
  EXPECT_NO_THROW(ranks[1]->leave());
  EXPECT_EQ(failure_of([&] { ranks[0]->barrier(); }).sentence, "gone");
}

TEST_P(CommunicatorAbort, WorldsThatFailLeaveNoThreadNoFileAndTheNextOneWorks) {
  std::thread([] {}).join();  // a sanitizer may start a thread of its own with the first
  (void)make_world(2);        // libraries keep files from their first use on
  const std::ptrdiff_t threads = count_threads();
  const std::ptrdiff_t files = count_entries("/proc/self/fd");
  for (int round = 0; round < 20; ++round) {
    const auto failed = make_world(3);
    const auto failures = failures_of(failed, [](Communicator& self) {
      if (self.rank() == 1) return self.abort("device 1 is out of memory");
      (void)self.receive(1, {.index = self.rank()});
    });
    EXPECT_EQ(sentences_of(failures), (std::vector<std::string>{"device 1 is out of memory", "",
                                                                "device 1 is out of memory"}));
    const auto next = make_world(3);
    EXPECT_EQ(sentences_of(failures_of(next, [](Communicator& self) { self.barrier(); })),
              std::vector<std::string>(3));
  }
  EXPECT_TRUE(threads_come_down_to(threads));
  EXPECT_EQ(count_entries("/proc/self/fd"), files);
}

}  // namespace
}  // namespace frazil
