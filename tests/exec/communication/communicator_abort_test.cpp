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

TEST_P(CommunicatorAbort, SendAfterAnAbortThrows) {
  const auto ranks = make_world(2);
  ranks[0]->abort("gone");
  EXPECT_THROW(ranks[1]->send(0, {}, {}), PeerLost);
}

TEST_P(CommunicatorAbort, ReceiveAfterAnAbortThrowsEvenIfTheMessageIsThere) {
  const auto ranks = make_world(2);
  ranks[0]->send(1, {}, {});
  ranks[0]->abort("gone");
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
  EXPECT_EQ(before.expired(), !GetParam().shares_memory && !GetParam().holds_sent)
      << "small messages are copied";
  ranks[1]->abort("gone");
  EXPECT_TRUE(before.expired() || GetParam().holds_sent);
  EXPECT_TRUE(send_one(*ranks[0], 1, 1).expired());
  for (int i = 0; i < 5000 && !before.expired(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(before.expired());
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
