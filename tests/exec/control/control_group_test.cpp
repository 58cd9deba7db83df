// A leader and its members do every job together; when one is lost all hear the same sentence, and
// a step is done by all or by none.

#include "exec/control/control_group.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "exec/control/control_member.h"
#include "exec/links/socket.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

std::string name_of(int process) { return process == 1 ? "rank 1" : "ranks 2 and 3"; }

// Collects what is said of an end, in any thread.
class Said {
 public:
  void say(const std::string& sentence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    sentences_.push_back(sentence);
    changed_.notify_all();
  }
  std::string first() {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !sentences_.empty(); });
    return came ? sentences_.front() : "nothing";
  }
  std::size_t count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return sentences_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> sentences_;
};

struct TestMember {
  Said aborted;
  int socket = -1;
  std::unique_ptr<ControlMember> member;
};

class ControlGroupTest : public testing::Test {
 protected:
  ControlGroupTest()
      : group_(name_of, {.abort = [this](const std::string& s) { aborted_.say(s); },
                         .suspect =
                             [this](const Silence& s) {
                               (s.is_over ? heard_ : suspected_).say(s.sentence);
                             }}) {
    for (int process = 1; process <= 2; ++process) admit(process);
  }

  void admit(int process) {
    SocketPair pair = make_socket_pair();
    auto made = std::make_unique<TestMember>();
    made->socket = pair[1].number();
    made->member = std::make_unique<ControlMember>(
        std::move(pair[1]), [said = &made->aborted](const std::string& s) { said->say(s); });
    members_[process] = std::move(made);
    group_.admit(process, std::move(pair[0]));
  }

  ControlMember& member(int process) { return *members_.at(process)->member; }
  // Cuts a member off, as the system does for a process that is killed.
  void kill(int process) { ::shutdown(members_.at(process)->socket, SHUT_RDWR); }

  Said aborted_;
  Said suspected_;
  Said heard_;
  std::map<int, std::unique_ptr<TestMember>> members_;
  ControlGroup group_;
};

TEST_F(ControlGroupTest, GivesEveryMemberTheJobAndCollectsWhatTheyAnswer) {
  group_.order("a job");
  for (const int process : {2, 1}) {
    const std::optional<OrderMessage> order = member(process).next();
    ASSERT_TRUE(order);
    EXPECT_EQ(order->job, "a job");
    member(process).answer(order->number, "done by " + std::to_string(process));
  }
  std::map<int, std::string> results;
  for (const MemberReply& reply : group_.collect()) results[reply.process] = reply.result;
  EXPECT_EQ(results, (std::map<int, std::string>{{1, "done by 1"}, {2, "done by 2"}}));
  EXPECT_FALSE(group_.cause());
  EXPECT_EQ(aborted_.count(), 0U);
}

TEST_F(ControlGroupTest, EndsTheJobEverywhereWhereOneFails) {
  group_.order("a job");
  const std::optional<OrderMessage> order = member(2).next();
  member(2).fail({order->number, FaultKind::kOutOfMemory, "rank 2, step 3: out of memory"});
  EXPECT_EQ(aborted_.first(), "rank 2, step 3: out of memory");
  EXPECT_EQ(members_.at(1)->aborted.first(), "rank 2, step 3: out of memory");
  member(1).fail({member(1).next()->number, FaultKind::kPeerLost, "rank 2, step 3: out of memory"});
  const std::vector<MemberReply> replies = group_.collect();
  EXPECT_EQ(replies.size(), 2U);
  EXPECT_EQ(group_.cause(), "rank 2, step 3: out of memory");
  EXPECT_FALSE(group_.has_lost()) << "a failure is no loss";
}

TEST_F(ControlGroupTest, TellsAllTheSameOfAMemberThatIsLost) {
  group_.order("a job");
  const std::uint64_t number = member(1).next()->number;
  kill(2);
  const std::string sentence = "ranks 2 and 3 are lost: their process has ended";
  EXPECT_EQ(aborted_.first(), sentence);
  EXPECT_EQ(members_.at(1)->aborted.first(), sentence);
  member(1).fail({number, FaultKind::kPeerLost, sentence});
  EXPECT_EQ(group_.collect().size(), 1U) << "nobody waits for the lost one";
  EXPECT_EQ(group_.take_lost(), (std::map<int, std::string>{{2, sentence}}));
  EXPECT_EQ(group_.members(), (std::set<int>{1}));
}

TEST_F(ControlGroupTest, EndsAJobThatBeginsAfterALoss) {
  kill(1);
  while (!group_.has_lost()) std::this_thread::sleep_for(milliseconds(1));
  group_.order("a job");
  EXPECT_EQ(aborted_.first(), "rank 1 is lost: its process has ended");
  const std::optional<OrderMessage> order = member(2).next();
  ASSERT_TRUE(order) << "the others hear of the job, and that it has ended";
  EXPECT_EQ(members_.at(2)->aborted.first(), "rank 1 is lost: its process has ended");
  member(2).fail({order->number, FaultKind::kUndone, "so"});
  EXPECT_EQ(group_.collect().size(), 1U);
}

// Every device of three processes votes; the outcome of each vote.
std::vector<std::string> vote_all(const std::vector<CommitRound*>& rounds, Step step) {
  const WaitLimit limit(std::chrono::seconds(20));
  std::vector<std::future<std::string>> votes;
  for (std::size_t p = 0; p < rounds.size(); ++p) {
    votes.push_back(std::async(std::launch::async, [&, p]() -> std::string {
      try {
        rounds[p]->vote(DeviceId{p}, step, limit, "loss of " + std::to_string(p));
      } catch (const StepUndone& undone) {
        return undone.what();
      }
      return "committed";
    }));
  }
  std::vector<std::string> outcomes;
  for (auto& vote : votes) outcomes.push_back(vote.get());
  return outcomes;
}

TEST_F(ControlGroupTest, CommitsAStepWhenAllAreReady) {
  for (const Step step : {4, 5, 6}) {
    group_.order("a step", {0, 1, 2}, step);
    group_.round().begin(step, 1);
    std::vector<std::uint64_t> numbers;
    for (const int process : {1, 2}) {
      numbers.push_back(member(process).next()->number);
      member(process).round().begin(step, 1);
    }
    EXPECT_EQ(vote_all({&group_.round(), &member(1).round(), &member(2).round()}, step),
              (std::vector<std::string>(3, "committed")));
    EXPECT_EQ(group_.notes_of(2), (std::vector<std::string>{"loss of 2"}));
    for (const int process : {1, 2}) {
      member(process).answer(numbers[static_cast<std::size_t>(process - 1)], "");
    }
    EXPECT_EQ(group_.collect().size(), 2U);
  }
}

TEST_F(ControlGroupTest, UndoesAStepWhereOneIsLostBeforeAllAreReady) {
  group_.order("a step", {0, 1, 2}, 4);
  group_.round().begin(4, 1);
  const std::uint64_t number = member(1).next()->number;
  member(1).round().begin(4, 1);
  std::thread killer([this] {
    std::this_thread::sleep_for(milliseconds(20));
    kill(2);
  });
  const std::string sentence = "ranks 2 and 3 are lost: their process has ended";
  EXPECT_EQ(vote_all({&group_.round(), &member(1).round()}, 4),
            (std::vector<std::string>(2, sentence)));
  killer.join();
  member(1).fail({number, FaultKind::kUndone, sentence});
  (void)group_.collect();
  // What was undone stays so until a new world is entered.
  EXPECT_EQ(vote_all({&group_.round()}, 4), (std::vector<std::string>(1, sentence)));
  group_.round().renew();
  member(1).renew();
  (void)group_.take_lost();
  group_.order("a step", {0, 1}, 4);
  group_.round().begin(4, 1);
  const std::uint64_t again = member(1).next()->number;
  member(1).round().begin(4, 1);
  EXPECT_EQ(vote_all({&group_.round(), &member(1).round()}, 4),
            (std::vector<std::string>(2, "committed")));
  member(1).answer(again, "");
  EXPECT_EQ(group_.collect().size(), 1U);
}

TEST_F(ControlGroupTest, LeavesACommittedStepToTheEndWhoeverIsLostThen) {
  group_.order("a step", {0, 1, 2}, 4);
  group_.round().begin(4, 1);
  std::map<int, std::uint64_t> numbers;
  for (const int process : {1, 2}) {
    numbers[process] = member(process).next()->number;
    member(process).round().begin(4, 1);
  }
  EXPECT_EQ(vote_all({&group_.round(), &member(1).round(), &member(2).round()}, 4),
            (std::vector<std::string>(3, "committed")));
  kill(2);
  while (!group_.has_lost()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(aborted_.count(), 0U) << "the others have all they need";
  member(1).answer(numbers[1], "done");
  EXPECT_EQ(group_.collect().size(), 1U);
  EXPECT_EQ(group_.notes_of(2), (std::vector<std::string>{"loss of 2"}));
  EXPECT_FALSE(group_.cause());
}

// One that sleeps has no vote that could be missing.
TEST_F(ControlGroupTest, UndoesTheStepAfterALossBetweenTwoSteps) {
  group_.order("a step", {0}, 4);
  group_.round().begin(4, 1);
  EXPECT_EQ(vote_all({&group_.round()}, 4), (std::vector<std::string>{"committed"}));
  for (const int process : {1, 2}) member(process).answer(member(process).next()->number, "");
  EXPECT_EQ(group_.collect().size(), 2U);
  kill(2);
  while (!group_.has_lost()) std::this_thread::sleep_for(milliseconds(1));
  group_.order("a step", {0}, 5);
  group_.round().begin(5, 1);
  EXPECT_EQ(vote_all({&group_.round()}, 5),
            (std::vector<std::string>{"ranks 2 and 3 are lost: their process has ended"}));
}

TEST_F(ControlGroupTest, CountsAMemberThatIsGivenUpAsLost) {
  group_.give_up(2, "has failed");
  EXPECT_FALSE(member(2).next());
  EXPECT_EQ(member(2).stopped()->sentence, "ranks 2 and 3 are lost: their process has failed");
  EXPECT_EQ(group_.members(), std::set<int>{1});
  EXPECT_EQ(group_.take_lost(),
            (std::map<int, std::string>{{2, "ranks 2 and 3 are lost: their process has failed"}}));
}

TEST(ControlGroup, GivesUpAMemberThatLivesAndNeverEndsItsJob) {
  ControlGroup group(name_of, {.abort = [](const std::string&) {}, .suspect = {}},
                     milliseconds(300));
  SocketPair pair = make_socket_pair();
  const ControlMember hung(std::move(pair[1]), [](const std::string&) {});
  group.admit(1, std::move(pair[0]));
  group.order("a job");
  group.abort("the disk is full");
  EXPECT_EQ(group.collect().size(), 0U);
  EXPECT_EQ(group.take_lost(),
            (std::map<int, std::string>{{1,
                                         "rank 1 is lost: its process has not said in 300.000 "
                                         "ms how its job has ended"}}));
}

TEST_F(ControlGroupTest, SuspectsAndThenLosesAMemberOfWhichNothingIsHeard) {
  // A member that was stopped: its socket is open, and nothing comes over it.
  SocketPair silent = make_socket_pair();
  const std::string beat = to_bytes(BeatMessage{});
  ASSERT_GT(::send(silent[1].number(), beat.data(), beat.size(), 0), 0);
  group_.set_patience(std::chrono::seconds(3));
  group_.admit(3, std::move(silent[0]));
  EXPECT_NE(suspected_.first().find("nothing has been heard of ranks 2 and 3 for"),
            std::string::npos);
  while (!group_.has_lost()) std::this_thread::sleep_for(milliseconds(5));
  const std::map<int, std::string> lost = group_.take_lost();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_NE(lost.at(3).find("ranks 2 and 3 are lost: their process has not been heard of for"),
            std::string::npos)
      << lost.at(3);
  EXPECT_EQ(group_.members(), (std::set<int>{1, 2})) << "who says that it lives is no suspect";
}

TEST_F(ControlGroupTest, SaysWhenASuspectIsHeardOfAgain) {
  SocketPair silent = make_socket_pair();
  group_.admit(3, std::move(silent[0]));
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_EQ(suspected_.count(), 0U) << "it has only begun";
  const std::string beat = to_bytes(BeatMessage{});
  ASSERT_GT(::send(silent[1].number(), beat.data(), beat.size(), 0), 0);
  EXPECT_NE(suspected_.first(), "nothing");
  EXPECT_EQ(heard_.count(), 0U);
  ASSERT_GT(::send(silent[1].number(), beat.data(), beat.size(), 0), 0);
  EXPECT_EQ(heard_.first().find("ranks 2 and 3: heard of again after "), 0U) << heard_.first();
  EXPECT_FALSE(group_.has_lost());
}

TEST_F(ControlGroupTest, TellsWhenALossWasFoundAndHowLongNothingHadBeenHeard) {
  EXPECT_FALSE(group_.take_loss_moment());
  const SteadyTime before = std::chrono::steady_clock::now();
  kill(2);
  while (!group_.has_lost()) std::this_thread::sleep_for(milliseconds(1));
  const std::optional<LossMoment> moment = group_.take_loss_moment();
  ASSERT_TRUE(moment);
  EXPECT_GE(moment->found, before);
  EXPECT_GT(moment->unheard, Duration{0});
  EXPECT_FALSE(group_.take_loss_moment());
}

// A guest, for which the test answers itself.
struct Guest {
  explicit Guest(SocketPair pair)
      : leader(std::move(pair[0])), member(std::move(pair[1]), [](const std::string&) {}) {}
  Descriptor leader;
  ControlMember member;
};

TEST_F(ControlGroupTest, SetsAGuestUpWhileTheMembersWork) {
  Guest guest(make_socket_pair());
  group_.invite(3, std::move(guest.leader), "what it needs");
  EXPECT_EQ(group_.guests(), (std::set<int>{3}));
  const std::optional<OrderMessage> setup = guest.member.next();
  ASSERT_TRUE(setup);
  EXPECT_EQ(setup->job, "what it needs");
  group_.order("a job");
  for (const int process : {1, 2}) {
    member(process).answer(member(process).next()->number, "done");
  }
  EXPECT_EQ(group_.collect().size(), 2U) << "a guest has no part in jobs";
  EXPECT_TRUE(group_.take_set_up().empty());
  guest.member.answer(setup->number, "done");
  std::map<int, std::optional<std::string>> ended;
  while (ended.empty()) ended = group_.take_set_up();
  EXPECT_EQ(ended, (std::map<int, std::optional<std::string>>{{3, std::nullopt}}));
  EXPECT_TRUE(group_.take_in(3));
  EXPECT_EQ(group_.members(), (std::set<int>{1, 2, 3}));
  group_.order("another job");
  EXPECT_EQ(guest.member.next()->job, "another job");
}

TEST_F(ControlGroupTest, IsNotDisturbedByAGuestThatGoesOrFails) {
  group_.order("a job");
  {
    Guest guest(make_socket_pair());
    group_.invite(3, std::move(guest.leader), "what it needs");
    (void)guest.member.next();
  }
  Guest failing(make_socket_pair());
  group_.invite(4, std::move(failing.leader), "what it needs");
  failing.member.fail({failing.member.next()->number, FaultKind::kBadInput, "no such data"});
  std::map<int, std::optional<std::string>> ended;
  while (ended.size() < 2) ended.merge(group_.take_set_up());
  EXPECT_EQ(ended.at(3), "ranks 2 and 3: its process has ended before it took part");
  EXPECT_NE(ended.at(4)->find("no such data"), std::string::npos);
  EXPECT_TRUE(group_.guests().empty());
  EXPECT_FALSE(group_.take_in(3));
  EXPECT_FALSE(group_.has_lost());
  EXPECT_FALSE(group_.cause());
  EXPECT_FALSE(failing.member.next());
  EXPECT_EQ(failing.member.stopped()->code, 2);
  for (const int process : {1, 2}) {
    member(process).answer(member(process).next()->number, "done");
  }
  EXPECT_EQ(group_.collect().size(), 2U);
}

TEST_F(ControlGroupTest, LosesAMemberThatSendsWhatIsNoMessage) {
  SocketPair pair = make_socket_pair();
  group_.admit(3, std::move(pair[0]));
  const std::string garbage = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_GT(::send(pair[1].number(), garbage.data(), garbage.size(), 0), 0);
  while (!group_.has_lost()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(group_.take_lost().at(3),
            "ranks 2 and 3 are lost: their process sent what is no message (found bytes that begin "
            "no control message)");
}

TEST_F(ControlGroupTest, KnowsHowFarClocksAreApart) {
  ClockOffset clock;
  for (int i = 0; i < 1000 && clock.uncertainty < Duration{0}; ++i) {
    clock = group_.clock_of(1);
    std::this_thread::sleep_for(milliseconds(5));
  }
  ASSERT_GE(clock.uncertainty, Duration{0});
  // Both ends have one clock here.
  EXPECT_LE(std::chrono::abs(clock.offset), clock.uncertainty);
}

// The end of a member whose clock goes so much ahead, and which answers each beat after a while.
void beat_ahead(const Descriptor& socket, Duration ahead, int beats) {
  const auto now = [ahead] {
    return (std::chrono::steady_clock::now().time_since_epoch() + ahead).count();
  };
  ControlSocket end{Descriptor(::dup(socket.number()))};
  while (beats > 0) {
    std::vector<ControlMessage> messages;
    if (!end.receive(messages)) return;
    for (const ControlMessage& message : messages) {
      const std::int64_t heard = now();
      const auto* const beat = std::get_if<BeatMessage>(&message);
      if (beat == nullptr) continue;
      std::this_thread::sleep_for(milliseconds(30));
      (void)end.send(BeatMessage{now(), beat->sent_ns, heard});
      --beats;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST(ControlWatchTest, FindsHowFarAClockIsAheadHoweverLateBeatsAreAnswered) {
  for (const Duration ahead : {Duration(std::chrono::hours(100)), -Duration(milliseconds(700))}) {
    SocketPair pair = make_socket_pair();
    ControlWatch watch({.on_message = [](int, ControlMessage) {},
                        .on_end = [](int, const std::string&, Duration) {},
                        .on_silence = {}});
    watch.add(1, std::move(pair[0]));
    EXPECT_FALSE(watch.clock_of(1).is_known());
    beat_ahead(pair[1], ahead, 3);
    ClockOffset clock;
    for (int i = 0; i < 5000 && !clock.is_known(); ++i) {
      clock = watch.clock_of(1);
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_TRUE(clock.is_known());
    EXPECT_LE(std::chrono::abs(clock.offset - ahead), clock.uncertainty);
  }
}

TEST_F(ControlGroupTest, TakesClocksThatCannotBeToldApartAsOne) {
  ClockOffset clock;
  for (int i = 0; i < 5000 && !clock.is_known(); ++i) {
    clock = group_.clock_of(2);
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_TRUE(clock.is_known()) << "known once both ends have spoken";
  EXPECT_EQ(clock.offset, Duration{0});
}

TEST(ControlMemberTest, EndsWithItsLeader) {
  SocketPair pair = make_socket_pair();
  Said aborted;
  ControlMember member(std::move(pair[1]), [&](const std::string& s) { aborted.say(s); });
  pair[0].close();
  EXPECT_EQ(aborted.first(), "the leader of the run is lost: its process has ended");
  EXPECT_THROW((void)member.next(), PeerLost);
}

TEST(ControlMemberTest, IsDismissedWithACode) {
  SocketPair pair = make_socket_pair();
  ControlMember member(std::move(pair[1]), [](const std::string&) {});
  ControlGroup group(name_of, {.abort = [](const std::string&) {}, .suspect = {}});
  group.admit(1, std::move(pair[0]));
  group.dismiss(1, 143, "stopped by signal 15");
  EXPECT_FALSE(member.next());
  EXPECT_EQ(member.stopped()->code, 143);
  EXPECT_EQ(member.stopped()->sentence, "stopped by signal 15");
}

}  // namespace
}  // namespace frazil
