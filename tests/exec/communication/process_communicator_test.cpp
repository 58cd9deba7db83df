// What a world over processes adds to the contract: losses, epochs, credit. The processes are this
// one, so that any of them can be broken.

#include "exec/communication/process_communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>

#include "exec/communication/world_cause.h"
#include "tests/exec/communication/process_worlds.h"
#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

Tag numbered(std::int32_t index, MessageKind kind = MessageKind::kProbe) {
  return {.kind = kind, .index = index};
}

// Links whose sockets a test may close as the system does when it kills a process: without a word.
struct MortalLinks {
  explicit MortalLinks(int processes) {
    auto sockets = make_socket_pairs(processes);
    for (auto& of_process : sockets) {
      numbers.emplace_back();
      for (const PeerSockets& peer : of_process) {
        if (!peer.steps.is_open()) continue;
        numbers.back().push_back(peer.steps.number());
        numbers.back().push_back(peer.bulk.number());
      }
      all.push_back(std::make_shared<PeerLinks>(std::move(of_process), brief_options()));
    }
  }
  void kill(std::size_t process) const {
    for (const int number : numbers[process]) shutdown(number, SHUT_RDWR);
  }
  std::vector<std::vector<int>> numbers;  // by process
  AllLinks all;
};

TEST(ProcessCommunicator, SaysWhichRankIsLostInTheSameWordsEverywhere) {
  const MortalLinks links(4);
  const Ranks ranks = make_ranks(links.all, 1, {0, 1, 2, 3});
  const auto failures = failures_of(ranks, [&](Communicator& self) {
    if (self.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(5));
      return links.kill(1);
    }
    // One waits for the lost rank, one for another, one at the barrier.
    if (self.rank() == 0) (void)self.receive(1, numbered(0));
    if (self.rank() == 2) (void)self.receive(0, numbered(0));
    self.barrier();
  });
  for (const std::size_t rank : {0U, 2U, 3U}) {
    EXPECT_EQ(failures[rank].sentence, "rank 1 is lost: its process has ended");
    EXPECT_FALSE(failures[rank].fault);
  }
}

TEST(ProcessCommunicator, NamesAllRanksOfALostProcess) {
  const MortalLinks links(2);
  const Ranks ranks = make_ranks(links.all, 1, {0, 0, 1, 1});
  links.kill(1);
  EXPECT_EQ(failure_of([&] { (void)ranks[0]->receive(1, numbered(0)); }).sentence,
            "ranks 2 and 3 are lost: their process has ended");
  EXPECT_EQ(failure_of([&] { ranks[1]->send(0, numbered(1), {}); }).sentence,
            "ranks 2 and 3 are lost: their process has ended");
}

TEST(ProcessCommunicator, SaysThatAProcessIsLostWhichDoesNotAnswer) {
  const AllLinks links = make_unix_links(2);
  const Ranks ranks = make_ranks(links, 1, {0, 1});
  links[0]->lose(1);
  EXPECT_EQ(failure_of([&] { ranks[0]->barrier(); }).sentence,
            "rank 1 is lost: its process does not answer");
}

TEST(ProcessCommunicator, DoesNotTakeADepartureForALoss) {
  AllLinks links = make_unix_links(3);
  Ranks ranks = make_ranks(links, 1, {0, 1, 2});
  ranks.pop_back();
  links[2].reset();
  const auto failures = failures_of(ranks, [](Communicator& self) {
    if (self.rank() == 0) self.send(1, numbered(0), {at::ones({4})});
    if (self.rank() == 1) (void)self.receive(0, numbered(0));
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(2));
}

TEST(ProcessCommunicator, ReceivesWhatWasSentBeforeADeparture) {
  AllLinks links = make_unix_links(2);
  Ranks ranks = make_ranks(links, 1, {0, 1});
  ranks[1]->send(0, numbered(0), {at::ones({4})});
  ranks[1]->send(0, numbered(1, MessageKind::kGradientSum), {at::zeros({4})});
  ranks[1].reset();
  links[1].reset();
  EXPECT_TRUE(
      at::equal(ranks[0]->receive(1, numbered(1, MessageKind::kGradientSum))[0], at::zeros({4})));
  EXPECT_TRUE(at::equal(ranks[0]->receive(1, numbered(0))[0], at::ones({4})));
  EXPECT_EQ(failure_of([&] { (void)ranks[0]->receive(1, numbered(2)); }).sentence,
            "rank 0 waits for probe 2 (step 0) from rank 1, which has left");
}

TEST(ProcessCommunicator, GoesOnInANewWorldWithoutTheLostProcess) {
  const MortalLinks links(3);
  Ranks ranks = make_ranks(links.all, 1, {0, 1, 2});
  links.kill(1);
  for (const std::size_t rank : {0U, 2U}) {
    EXPECT_EQ(failure_of([&] { ranks[rank]->barrier(); }).sentence,
              "rank 1 is lost: its process has ended");
  }
  ranks.clear();
  Ranks next;
  for (const int process : {0, 2}) {
    const ProcessPlace place{process, {0, 2}};
    for (auto& rank :
         make_process_communicators(links.all[static_cast<std::size_t>(process)], 2, place)) {
      next.push_back(std::move(rank));
    }
  }
  const auto failures = failures_of(next, [](Communicator& self) {
    self.send(1 - self.rank(), numbered(self.rank()), {at::ones({4})});
    (void)self.receive(1 - self.rank(), numbered(1 - self.rank()));
    self.barrier();
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(2));
}

TEST(ProcessCommunicator, HearsNothingOfAnEarlierWorld) {
  const AllLinks links = make_unix_links(2);
  const Ranks old = make_ranks(links, 1, {0, 1});
  const ProcessPlace place{1, {0, 1}};
  const Ranks next =
      make_process_communicators(links[1], 2, place, {.deadline = std::chrono::seconds(1)});
  old[0]->send(1, numbered(0), {at::ones({4})});
  old[0]->abort("of no matter to the next world");
  EXPECT_NE(failure_of([&] { (void)next[0]->receive(0, numbered(0)); }).sentence.find("waited"),
            std::string::npos);
  EXPECT_EQ(links[1]->counts().stale_frames, 2U);
}

TEST(ProcessCommunicator, WaitsToSendWhatIsOverItsCredit) {
  LinkOptions options = brief_options();
  options.credit_bytes = 1 << 20;
  const AllLinks links = make_unix_links(2, options);
  const Ranks ranks = make_ranks(links, 1, {0, 1});
  constexpr int kMessages = 20;
  const auto failures = failures_of(ranks, [](Communicator& self) {
    for (int i = 0; i < kMessages; ++i) {
      if (self.rank() == 0) self.send(1, numbered(i), {at::full({100'000}, i)});
    }
    if (self.rank() == 0) return;
    std::this_thread::sleep_for(milliseconds(20));
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(self.receive(0, numbered(i)).at(0)[99'999].item<int>(), i);
    }
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(2));
}

TEST(ProcessCommunicator, BothMayBeOverTheirCreditAtOnce) {
  LinkOptions options = brief_options();
  options.credit_bytes = 1 << 20;
  const AllLinks links = make_unix_links(2, options);
  const Ranks ranks = make_ranks(links, 1, {0, 1});
  const auto failures = failures_of(ranks, [](Communicator& self) {
    for (int i = 0; i < 20; ++i) self.send(1 - self.rank(), numbered(i), {at::full({100'000}, i)});
    for (int i = 0; i < 20; ++i) (void)self.receive(1 - self.rank(), numbered(i));
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(2));
}

TEST(ProcessCommunicator, EndsAWaitForCreditAtTheDeadlineOrWithAnAbort) {
  LinkOptions options = brief_options();
  options.credit_bytes = 1 << 20;
  for (const bool aborts : {false, true}) {
    const AllLinks links = make_unix_links(2, options);
    const Ranks ranks =
        make_ranks(links, 1, {0, 1}, {.deadline = milliseconds(aborts ? 600'000 : 30)});
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(20));
      if (aborts) ranks[0]->abort("enough");
    });
    const RankFailure failure = failure_of([&] {
      for (int i = 0; i < 100; ++i) ranks[0]->send(1, numbered(i), {at::ones({100'000})});
    });
    other.join();
    if (aborts) {
      EXPECT_EQ(failure.sentence, "enough");
      continue;
    }
    EXPECT_TRUE(failure.sentence.starts_with("rank 0 waited 30.000 ms to send probe "));
    EXPECT_TRUE(failure.sentence.ends_with(" to rank 1, whose process takes no more"));
    ASSERT_TRUE(failure.fault);
    EXPECT_EQ(failure.fault->kind, CommunicationFault::Kind::kDeadline);
  }
}

// All find a cause of their own at the same time.
TEST(ProcessCommunicator, SettlesOneCauseOfManyAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const AllLinks links = make_unix_links(4);
    const Ranks ranks = make_ranks(links, 1, {0, 1, 2, 3});
    std::atomic<int> ready{0};
    const auto failures = failures_of(ranks, [&](Communicator& self) {
      for (++ready; ready < 4;) std::this_thread::yield();
      self.abort("rank " + std::to_string(self.rank()) + " has failed");
      self.barrier();
    });
    for (const RankFailure& failure : failures) {
      EXPECT_EQ(failure.sentence, failures[0].sentence);
      EXPECT_TRUE(failure.sentence.ends_with(" has failed")) << failure.sentence;
    }
  }
}

TEST(ProcessCommunicator, RefusesATagThatNamesTwoMessages) {
  const AllLinks links = make_unix_links(2);
  const Ranks ranks = make_ranks(links, 1, {0, 1});
  ranks[0]->send(1, numbered(3), {});
  ranks[0]->send(1, numbered(3), {});
  EXPECT_EQ(failure_of([&] { ranks[1]->send(0, numbered(0), {}); }).sentence,
            "rank 0 sends probe 3 (step 0) to rank 1, which has not yet received the one before");
}

TEST(ProcessCommunicator, LeavesNoFileAndNoThreadAfterAHundredWorlds) {
  std::thread([] {}).join();  // a sanitizer may start a thread of its own with the first
  const std::ptrdiff_t threads = count_threads();
  const std::ptrdiff_t files = count_entries("/proc/self/fd");
  for (int round = 0; round < 20; ++round) {
    const AllLinks links = make_unix_links(2);
    for (std::uint32_t epoch = 1; epoch <= 5; ++epoch) {
      const Ranks ranks = make_ranks(links, epoch, {0, 0, 1});
      const auto failures = failures_of(ranks, [&](Communicator& self) {
        self.send((self.rank() + 1) % 3, numbered(self.rank()), {at::ones({100})});
        (void)self.receive((self.rank() + 2) % 3, numbered((self.rank() + 2) % 3));
        self.barrier();
      });
      EXPECT_EQ(sentences_of(failures), std::vector<std::string>(3));
    }
  }
  EXPECT_TRUE(threads_come_down_to(threads));
  EXPECT_EQ(count_entries("/proc/self/fd"), files);
}

TEST(WorldCause, ComesBackFromItsBytesAndIsRefusedOtherwise) {
  WorldCause cause{.reason = "rank 1 waited", .fault = CommunicationFault{}};
  cause.fault->kind = CommunicationFault::Kind::kPeerLeft;
  cause.fault->rank = 3;
  cause.fault->step = 17;
  cause.fault->awaited = "a barrier";
  const std::string bytes = encode_cause(cause);
  const std::optional<WorldCause> got = decode_cause(bytes);
  ASSERT_TRUE(got && got->fault);
  EXPECT_EQ(got->reason, cause.reason);
  EXPECT_EQ(got->fault->sentence, cause.reason);
  EXPECT_EQ(got->fault->kind, cause.fault->kind);
  EXPECT_EQ(got->fault->rank, 3);
  EXPECT_EQ(got->fault->step, Step{17});
  EXPECT_EQ(got->fault->awaited, "a barrier");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_cause(bytes.substr(0, length))) << length;
  }
  EXPECT_FALSE(decode_cause(bytes + "x"));
}

}  // namespace
}  // namespace frazil
