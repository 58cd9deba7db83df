// Processes that join a run and exchange messages by Gloo: whatever a message holds, and whatever
// becomes of a process.

#include "exec/communication/gloo_communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using Job = std::function<void(Communicator&)>;

Tag name_message(std::int32_t index, MessageKind kind = MessageKind::kProbe) {
  return {.kind = kind, .index = index};
}

// Processes that are forks of the test; where they meet is known before they begin.
class GlooProcesses : public testing::Test {
 protected:
  void TearDown() override {
    for (const pid_t child : children_) {
      kill(child, SIGCONT);
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

  std::unique_ptr<Communicator> join(int process, int processes,
                                     const CommunicatorOptions& options) {
    GlooPlace place{.process = process, .processes = processes, .store = store_, .name = "first"};
    if (process == 0) place.listener = std::move(listener_);
    const auto links = std::make_shared<GlooLinks>(std::make_unique<GlooGroup>(std::move(place)),
                                                   GlooLinkOptions{.linger = milliseconds(200)});
    std::vector<int> process_of_rank;
    for (int rank = 0; rank < processes; ++rank) process_of_rank.push_back(rank);
    return std::move(make_gloo_communicators(links, 1, {process, process_of_rank}, options)[0]);
  }

  // Forks a child that plays a rank; it ends without running the parent's destructors.
  pid_t fork_rank(int process, int processes, const Job& job,
                  const CommunicatorOptions& options = {}) {
    const pid_t child = fork();
    if (child == 0) {
      listener_.close();
      {
        const auto self = join(process, processes, options);
        (void)failure_of([&] { job(*self); });
      }
      _exit(0);
    }
    children_.push_back(child);
    return child;
  }

 private:
  Descriptor listener_ = listen_at({});
  SocketAddress store_ = address_of(listener_);
  std::vector<pid_t> children_;
};

std::vector<Tensors> drawn_messages() {
  Tensors many;
  for (int i = 0; i < 300; ++i) many.push_back(at::full({i % 7}, i));  // a head of many kilobytes
  return {
      {},
      {at::rand({1 << 20})},
      {at::rand({16, 24}).t(), at::Tensor(), at::empty({0, 3}), at::scalar_tensor(4)},
      {at::arange(100, at::kLong), at::rand({5, 6}).to(at::kBFloat16), at::ones({3}, at::kBool)},
      many};
}

void expect_equal(const Tensors& got, const Tensors& sent) {
  ASSERT_EQ(got.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_EQ(got[i].defined(), sent[i].defined()) << i;
    if (!sent[i].defined()) continue;
    EXPECT_EQ(got[i].scalar_type(), sent[i].scalar_type()) << i;
    EXPECT_EQ(got[i].strides(), sent[i].strides()) << i;
    EXPECT_TRUE(at::equal(got[i], sent[i])) << i;
  }
}

TEST_F(GlooProcesses, ExchangeMessagesOfEveryKindInBothLanes) {
  constexpr int kMessages = 5;
  fork_rank(1, 2, [](Communicator& self) {
    for (int i = 0; i < kMessages; ++i) {
      self.send(0, name_message(i), self.receive(0, name_message(i)));
      self.send(0, name_message(i, MessageKind::kGradientSum),
                self.receive(0, name_message(i, MessageKind::kGradientSum)));
    }
  });
  const auto self = join(0, 2, {});
  const std::vector<Tensors> messages = drawn_messages();
  ASSERT_EQ(messages.size(), static_cast<std::size_t>(kMessages));
  for (int i = 0; i < kMessages; ++i) {
    const Tensors& message = messages[static_cast<std::size_t>(i)];
    self->send(1, name_message(i), message);
    self->send(1, name_message(i, MessageKind::kGradientSum), message);
    expect_equal(self->receive(1, name_message(i)), message);
    expect_equal(self->receive(1, name_message(i, MessageKind::kGradientSum)), message);
  }
}

TEST_F(GlooProcesses, ThatAreKilledAreLostForAllSurvivors) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t victim =
      fork_rank(1, 3, [](Communicator& self) { (void)self.receive(0, name_message(0)); });
  // This one waits for a survivor.
  fork_rank(2, 3, [&](Communicator& self) {
    const std::string sentence =
        failure_of([&] { (void)self.receive(0, name_message(0)); }).sentence;
    [[maybe_unused]] const ssize_t written = write(told[1], sentence.data(), sentence.size());
  });
  const auto self = join(0, 3, {});
  std::thread killing([&] {
    std::this_thread::sleep_for(milliseconds(50));
    kill(victim, SIGKILL);
  });
  EXPECT_EQ(failure_of([&] { (void)self->receive(1, name_message(0)); }).sentence,
            "rank 1 is lost: its process has ended");
  killing.join();
  std::string sentence(200, '\0');
  const ssize_t length = read(told[0], sentence.data(), sentence.size());
  sentence.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  EXPECT_EQ(sentence, "rank 1 is lost: its process has ended");
  close(told[0]);
  close(told[1]);
}

// Whether it is a send or a receive that finds out, the process is lost.
TEST_F(GlooProcesses, ThatAreKilledAreLostForWhoOnlySends) {
  const pid_t victim = fork_rank(1, 2, [](Communicator& self) {
    self.barrier();
    (void)self.receive(0, name_message(-1));
  });
  const auto self = join(0, 2, {});
  self->barrier();
  kill(victim, SIGKILL);
  const RankFailure failure = failure_of([&] {
    for (int i = 0; i < 10'000; ++i) {
      self->send(1, name_message(i), {at::ones({16})});
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  EXPECT_EQ(failure.sentence, "rank 1 is lost: its process has ended");
}

TEST_F(GlooProcesses, ThatAreStoppedAreOverTheDeadline) {
  const pid_t stopped = fork_rank(1, 2, [](Communicator& self) {
    self.barrier();
    (void)self.receive(0, name_message(0));
  });
  const auto self = join(0, 2, {.deadline = std::chrono::seconds(2)});
  self->barrier();
  kill(stopped, SIGSTOP);
  EXPECT_EQ(failure_of([&] { (void)self->receive(1, name_message(4)); }).sentence,
            "rank 0 waited 2.000 s for probe 4 (step 0) from rank 1");
}

// Whoever sends much to a process that takes nothing waits for credit, and not for ever.
TEST_F(GlooProcesses, ThatAreStoppedHoldNobodyWhoSendsBeyondTheDeadline) {
  const pid_t stopped = fork_rank(1, 2, [](Communicator& self) {
    self.barrier();
    (void)self.receive(0, name_message(-1));
  });
  const auto self = join(0, 2, {.deadline = std::chrono::seconds(2)});
  self->barrier();
  kill(stopped, SIGSTOP);
  const RankFailure failure = failure_of([&] {
    for (int i = 0; i < 20; ++i) self->send(1, name_message(i), {at::ones({1 << 25})});
  });
  EXPECT_TRUE(failure.sentence.starts_with("rank 0 waited 2.000 s to send probe "))
      << failure.sentence;
}

TEST(GlooGroup, ThatDoesNotComeTogetherIsOneSentence) {
  GlooPlace place{.process = 0,
                  .processes = 2,
                  .listener = listen_at({}),
                  .name = "alone",
                  .limit = milliseconds(300)};
  place.store = address_of(place.listener);
  try {
    const GlooGroup group(std::move(place));
    FAIL() << "a process alone has no group of two";
  } catch (const GlooError& error) {
    const std::string sentence = error.what();
    EXPECT_TRUE(sentence.starts_with("the processes do not come together by Gloo: ")) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace frazil
