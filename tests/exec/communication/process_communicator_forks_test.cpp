// Processes that are really processes: killed, stopped, and gone without a word.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "exec/communication/process_communicator.h"
#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using Sockets = std::vector<std::vector<PeerSockets>>;

Tag tagged(std::int32_t index) { return {.index = index}; }

std::unique_ptr<Communicator> join(Sockets& sockets, int process,
                                   const CommunicatorOptions& options,
                                   const LinkOptions& link_options = {}) {
  std::vector<int> process_of_rank;
  for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
    process_of_rank.push_back(static_cast<int>(rank));
  }
  auto own = std::move(sockets[static_cast<std::size_t>(process)]);
  sockets.clear();  // those of the others, which would hide that these have closed theirs
  const auto links = std::make_shared<PeerLinks>(std::move(own), link_options);
  return std::move(make_process_communicators(links, 1, {process, process_of_rank}, options)[0]);
}

// Forks a child that plays a rank; it ends without running the parent's destructors.
pid_t fork_rank(Sockets& sockets, int process, const CommunicatorOptions& options,
                const std::function<void(Communicator&)>& job) {
  const pid_t child = fork();
  if (child != 0) return child;
  {
    const auto self = join(sockets, process, options);
    (void)failure_of([&] { job(*self); });
  }
  _exit(0);
}

struct Child {
  explicit Child(pid_t number) : process(number) {}
  ~Child() {
    kill(process, SIGCONT);
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t process;
};

TEST(ForkedProcess, ExchangesMessagesSmallAndLarge) {
  Sockets sockets = make_socket_pairs(2);
  const Child child(fork_rank(sockets, 1, {}, [](Communicator& self) {
    for (int i = 0; i < 20; ++i) self.send(0, tagged(i), self.receive(0, tagged(i)));
  }));
  const auto self = join(sockets, 0, {});
  for (int i = 0; i < 20; ++i) {
    const at::Tensor tensor = at::rand({i % 2 == 0 ? 64 : 1 << 18});
    self->send(1, tagged(i), {tensor});
    ASSERT_TRUE(at::equal(self->receive(1, tagged(i)).at(0), tensor)) << i;
  }
}

TEST(ForkedProcess, ThatIsKilledIsLostForAllSurvivors) {
  Sockets sockets = make_socket_pairs(3);
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const Child victim(
      fork_rank(sockets, 1, {}, [](Communicator& self) { (void)self.receive(0, tagged(0)); }));
  const Child witness(fork_rank(sockets, 2, {}, [&](Communicator& self) {
    const std::string sentence = failure_of([&] { (void)self.receive(0, tagged(0)); }).sentence;
    [[maybe_unused]] const ssize_t written = write(told[1], sentence.data(), sentence.size());
    (void)failure_of([&] { self.barrier(); });
  }));
  const auto self = join(sockets, 0, {});
  std::thread killing([&] {
    std::this_thread::sleep_for(milliseconds(50));
    kill(victim.process, SIGKILL);
  });
  EXPECT_EQ(failure_of([&] { (void)self->receive(1, tagged(0)); }).sentence,
            "rank 1 is lost: its process has ended");
  killing.join();
  std::string sentence(200, '\0');
  const ssize_t length = read(told[0], sentence.data(), sentence.size());
  sentence.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  EXPECT_EQ(sentence, "rank 1 is lost: its process has ended");
  close(told[0]);
  close(told[1]);
}

TEST(ForkedProcess, ThatIsKilledWithALoanUnreadIsLostRatherThanHalfReceived) {
  for (int round = 0; round < 10; ++round) {
    Sockets sockets = make_socket_pairs(2);
    const Child child(fork_rank(sockets, 1, {}, [](Communicator& self) {
      for (int i = 0; i < 1000; ++i) {
        self.send(0, tagged(i), {at::full({1 << 20}, i)});
        (void)self.receive(0, tagged(i));
      }
    }));
    const auto self = join(sockets, 0, {});
    std::thread killing([&] {
      std::this_thread::sleep_for(milliseconds(5 + 3 * round));
      kill(child.process, SIGKILL);
    });
    const RankFailure failure = failure_of([&] {
      for (int i = 0; i < 1000; ++i) {
        self->send(1, tagged(i), {});
        const at::Tensor got = self->receive(1, tagged(i)).at(0);
        EXPECT_TRUE(at::equal(got, at::full({1 << 20}, i))) << i;
      }
    });
    killing.join();
    if (!failure.sentence.empty()) {
      EXPECT_EQ(failure.sentence, "rank 1 is lost: its process has ended");
    }
  }
}

TEST(ForkedProcess, ThatIsStoppedIsOverTheDeadline) {
  Sockets sockets = make_socket_pairs(2);
  const Child child(fork_rank(sockets, 1, {}, [](Communicator& self) {
    self.barrier();
    (void)self.receive(0, tagged(0));
  }));
  const auto self = join(sockets, 0, {.deadline = std::chrono::seconds(2)});
  self->barrier();
  kill(child.process, SIGSTOP);
  EXPECT_EQ(failure_of([&] { (void)self->receive(1, tagged(4)); }).sentence,
            "rank 0 waited 2.000 s for probe 4 (step 0) from rank 1");
}

TEST(ForkedProcess, WhoseLinkIsFullWhileItIsStoppedHoldsNobodyBeyondTheDeadline) {
  Sockets sockets = make_socket_pairs(2);
  const Child child(fork_rank(sockets, 1, {}, [](Communicator& self) {
    self.barrier();
    (void)self.receive(0, tagged(-1));
  }));
  const auto self = join(sockets, 0, {.deadline = std::chrono::seconds(2)},
                         {.credit_bytes = 1 << 22, .linger = milliseconds(1)});
  self->barrier();
  kill(child.process, SIGSTOP);
  const RankFailure failure = failure_of([&] {
    for (int i = 0; i < 100; ++i) self->send(1, tagged(i), {at::ones({1 << 18})});
  });
  EXPECT_TRUE(failure.sentence.starts_with("rank 0 waited 2.000 s to send probe "))
      << failure.sentence;
}

}  // namespace
}  // namespace frazil
