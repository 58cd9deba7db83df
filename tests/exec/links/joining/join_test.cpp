// Processes of one run find each other, and each is connected to each, whoever else knocks.

#include "exec/links/joining/join.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "exec/links/joining/late_peers.h"
#include "exec/links/joining/meeting.h"
#include "exec/links/joining/open_door.h"
#include "tests/exec/links/joining/joining_processes.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Join, TwoProcessesAreConnectedTwiceAndByControl) {
  LeaderThread leader(2, options_with(std::nullopt));
  JoinedWorld member = join_world(member_at(leader.port()), options_with(std::nullopt));
  JoinedWorld world = leader.world();
  expect_connected({&world, &member});
  EXPECT_EQ(world.members.at(1).facts.devices, 2);
  EXPECT_EQ(world.members.at(1).name.rfind("process 1 at 127.0.0.1:", 0), 0U);
}

TEST(Join, EightJoinersAtOnceAllComeTogetherWithAToken) {
  const Secret token = secret_of(9);
  LeaderThread leader(9, options_with(token));
  std::vector<std::future<JoinedWorld>> joining;
  for (int i = 0; i < 8; ++i) joining.push_back(join_in_thread(leader.port(), options_with(token)));
  std::vector<JoinedWorld> worlds;
  for (auto& member : joining) worlds.push_back(member.get());
  worlds.push_back(leader.world());
  EXPECT_EQ(listening_addresses(), std::set<std::string>{"0100007F"});
  std::vector<JoinedWorld*> all;
  for (JoinedWorld& world : worlds) all.push_back(&world);
  expect_connected(all);
}

TEST(Join, OfALauncherGivesEveryProcessItsOwnNumber) {
  LaunchPlace place = leader_of(3);
  place.launcher = Launcher::kVariables;
  Told told;
  auto leading = std::async(std::launch::async,
                            [&] { return join_world(place, options_with(std::nullopt, &told)); });
  const int port = std::stoi(told.wait_for("listening at 127.0.0.1:"));
  const auto join_as = [&](int process) {
    LaunchPlace own = member_at(port);
    own.launcher = Launcher::kVariables;
    own.process = process;
    own.processes = 3;
    return own;
  };
  EXPECT_NE(failure_to_join(join_as(3), options_with(std::nullopt))
                .find("says that it is process 3 of a run of 3"),
            std::string::npos);
  auto second = std::async(std::launch::async,
                           [&] { return join_world(join_as(2), options_with(std::nullopt)); });
  while (told.wait_for("the process at 127.0.0.1:").empty()) {
  }
  JoinedWorld first = join_world(join_as(1), options_with(std::nullopt));
  JoinedWorld other = second.get();
  EXPECT_EQ(other.process, 2);
  JoinedWorld world = leading.get();
  expect_connected({&world, &first, &other});
}

TEST(Join, ASecondLeaderFindsThePlaceTaken) {
  LeaderThread leader(2, options_with(std::nullopt));
  const std::string sentence =
      failure_to_join(leader_of(2, leader.port()), options_with(std::nullopt));
  EXPECT_NE(sentence.find("Address already in use"), std::string::npos) << sentence;
  JoinedWorld member = join_world(member_at(leader.port()), options_with(std::nullopt));
  JoinedWorld world = leader.world();
  expect_connected({&world, &member});
}

// Each is turned away in a sentence, which the leader tells too, and the run comes together.
TEST(Join, WhoeverDoesNotBelongToTheRunIsTurnedAway) {
  const Secret token = secret_of(9);
  LeaderThread leader(2, options_with(token));
  const int port = leader.port();
  const auto expect_refused = [&](const JoinOptions& options, const std::string& words) {
    const std::string sentence = failure_to_join(member_at(port), options);
    EXPECT_NE(sentence.find("found a refusal: the process at 127.0.0.1:"), std::string::npos)
        << sentence;
    EXPECT_NE(sentence.find(words + ", expected a welcome"), std::string::npos) << sentence;
    EXPECT_TRUE(leader.told.has_end(words)) << words;
  };
  expect_refused(options_with(secret_of(8)), "has another token");
  expect_refused(options_with(std::nullopt), "has no token");
  JoinOptions options = options_with(token);
  options.facts.run = 7;
  expect_refused(options, "has another run (0000000000000007, expected 0000000000000002)");
  options = options_with(token);
  options.facts.version = "0.2.0";
  expect_refused(options, "is of version 0.2.0, expected 0.1.0");
  options = options_with(token);
  options.facts.build = 7;
  expect_refused(options, "has another build (0000000000000007, expected 0000000000000001)");
  options = options_with(token);
  options.facts.kernels = 7;
  expect_refused(options,
                 "has other kernels, which give other bits (0000000000000007, expected "
                 "0000000000000003)");
  LaunchPlace again = member_at(port);
  again.restarts = 1;
  EXPECT_NE(
      failure_to_join(again, options_with(token)).find("belongs to start 1 of the run, expected 0"),
      std::string::npos);
  JoinedWorld member = join_world(member_at(port), options_with(token));
  JoinedWorld world = leader.world();
  expect_connected({&world, &member});
}

TEST(Join, ALeaderWithoutTheTokenIsNotJoined) {
  LeaderThread open(2, options_with(std::nullopt));
  const std::string sentence = failure_to_join(member_at(open.port()), options_with(secret_of(9)));
  EXPECT_NE(sentence.find("found a run without a token"), std::string::npos) << sentence;
  JoinedWorld member = join_world(member_at(open.port()), options_with(std::nullopt));
  (void)open.world();
}

// It knows that there is a token, and cannot prove that it has it.
TEST(Join, AFalseLeaderIsFoundOut) {
  const Descriptor listener = listen_at({});
  auto joining = std::async(std::launch::async, [&] {
    return failure_to_join(member_at(address_of(listener).port), options_with(secret_of(9)));
  });
  const Descriptor member = accept_from(listener, seconds(10));
  say(member, to_bytes(Challenge{draw_secret(), true}));
  (void)hear(member);
  Welcome words{.process = 1, .addresses = {{"127.0.0.1", 1}, {"127.0.0.1", 2}}};
  say(member, to_proved_bytes(words, secret_of(8), ProofPurpose::kLeader, {}, {}));
  EXPECT_NE(joining.get().find("found a leader with another token"), std::string::npos);
}

TEST(Join, AReplayedProofIsRefused) {
  const Secret token = secret_of(9);
  LeaderThread leader(2, options_with(token));
  const int port = leader.port();
  const auto hello_to = [&](const Descriptor& socket) {
    const JoinFrame first = hear(socket);
    const Secret nonce = std::get<Challenge>(first.message).nonce;
    const Hello hello{.facts = facts_of_run(),
                      .port = 1,
                      .has_token = true,
                      .challenge = nonce,
                      .nonce = draw_secret()};
    return to_proved_bytes(hello, token, ProofPurpose::kMember, nonce, hello.nonce);
  };
  std::string overheard;
  {
    const Descriptor honest = call(port);
    overheard = hello_to(honest);
  }  // it goes again without having spoken, so nobody has used its proof
  const Descriptor replaying = call(port);
  (void)hear(replaying);
  say(replaying, overheard);
  const JoinFrame answer = hear(replaying);
  ASSERT_TRUE(std::holds_alternative<Refusal>(answer.message));
  EXPECT_TRUE(leader.told.has_end("answers another challenge than its own: a replayed proof"));
  // With the challenge put right the proof no longer fits.
  const Descriptor mending = call(port);
  const Secret nonce = std::get<Challenge>(hear(mending).message).nonce;
  JoinMessage message = *parse_body(1, overheard.substr(kJoinHeadBytes));
  std::get<Hello>(message).challenge = nonce;
  say(mending, to_bytes(message));
  ASSERT_TRUE(std::holds_alternative<Refusal>(hear(mending).message));
  EXPECT_TRUE(leader.told.has_end("has another token"));
  JoinedWorld member = join_world(member_at(port), options_with(token));
  JoinedWorld world = leader.world();
  expect_connected({&world, &member});
}

TEST(Join, SilentSlowAndBabblingCallersHoldNobodyUp) {
  LeaderThread leader(3, options_with(std::nullopt));
  const int port = leader.port();
  const Descriptor silent = call(port);
  std::atomic<bool> ends{false};
  std::thread slow([&] {
    const Descriptor socket = call(port);
    const std::string bytes = to_bytes(Hello{.facts = facts_of_run()});
    for (std::size_t i = 0; i < bytes.size() && !ends; ++i) {
      if (::send(socket.number(), &bytes[i], 1, MSG_NOSIGNAL) != 1) return;
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  const Descriptor babbling = call(port);
  say(babbling, std::string(100'000, 'x'));
  const Descriptor boasting = call(port);
  std::string head = to_bytes(Hello{});
  head[10] = 1;  // a body of more than 64 KiB
  say(boasting, head);
  const Descriptor other = call(port);
  std::string newer = to_bytes(Hello{});
  newer[4] = 2;
  say(other, newer);
  const auto start = JoinClock::now();
  JoinedWorld first;
  auto second = join_in_thread(port, options_with(std::nullopt));
  first = join_world(member_at(port), options_with(std::nullopt));
  JoinedWorld last = second.get();
  JoinedWorld world = leader.world();
  EXPECT_LT(JoinClock::now() - start, seconds(10));
  expect_connected({&world, &first, &last});
  EXPECT_TRUE(leader.told.has_end("does not speak as a process of Frazil that joins"));
  EXPECT_TRUE(leader.told.has_end("speaks another version of the joining"));
  // The door goes on, and so do its callers' clocks.
  std::set<std::string> reasons;
  for (int i = 0; i < 100 && reasons.empty(); ++i) {
    for (const std::string& sentence : world.door->wait(milliseconds(50)).refused) {
      if (sentence.find("did not say in time who it is") != std::string::npos) {
        reasons.insert(sentence);
      }
    }
  }
  EXPECT_FALSE(reasons.empty());
  ends = true;
  slow.join();
}

TEST(Join, WhoVanishesBeforeAllAreHereLeavesItsPlaceToAnother) {
  LeaderThread leader(3, options_with(std::nullopt));
  const int port = leader.port();
  {
    const Descriptor vanishing = call(port);
    const Secret nonce = std::get<Challenge>(hear(vanishing).message).nonce;
    const Hello hello{.facts = facts_of_run(), .port = 1, .challenge = nonce};
    say(vanishing, to_bytes(hello));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_TRUE(leader.told.has_end("has gone again"));
  auto second = join_in_thread(port, options_with(std::nullopt));
  JoinedWorld first = join_world(member_at(port), options_with(std::nullopt));
  JoinedWorld last = second.get();
  JoinedWorld world = leader.world();
  expect_connected({&world, &first, &last});
}

// Processes, not threads: one is killed after it was welcomed.
TEST(Join, WhoIsKilledWhileAllConnectIsALostPeerForTheOthers) {
  LeaderThread leader(3, options_with(std::nullopt));
  const int port = leader.port();
  const pid_t child = fork();
  if (child == 0) {
    const Descriptor socket = call(port);
    const Secret nonce = std::get<Challenge>(hear(socket).message).nonce;
    say(socket, to_bytes(Hello{.facts = facts_of_run(), .port = 1, .challenge = nonce}));
    (void)hear(socket);  // welcome
    kill(getpid(), SIGKILL);
  }
  const std::string sentence = failure_to_join(member_at(port), options_with(std::nullopt));
  EXPECT_NE(sentence, "joined");
  EXPECT_THROW((void)leader.world(), PeerLost);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

TEST(Join, ForkedProcessesJoinAndTalk) {
  const Secret token = secret_of(9);
  LeaderThread leader(4, options_with(token));
  const int port = leader.port();
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      JoinedWorld world = join_world(member_at(port), options_with(token));
      const char byte = static_cast<char>('0' + world.process);
      bool sent = world.processes == 4;
      for (const PeerSockets& peer : world.peers) {
        if (peer.are_open()) sent &= ::send(peer.bulk.number(), &byte, 1, MSG_NOSIGNAL) == 1;
      }
      for (std::size_t j = 0; j < world.peers.size(); ++j) {
        if (!world.peers[j].are_open()) continue;
        pollfd entry{world.peers[j].bulk.number(), POLLIN, 0};
        char got = 0;
        sent &= ::poll(&entry, 1, 10'000) == 1;
        sent &= ::recv(world.peers[j].bulk.number(), &got, 1, 0) == 1;
        sent &= got == static_cast<char>('0' + j);
      }
      _exit(sent ? 0 : 1);
    }
    children.push_back(child);
  }
  JoinedWorld world = leader.world();
  for (std::size_t j = 1; j < world.peers.size(); ++j) {
    ASSERT_EQ(::send(world.peers[j].bulk.number(), "0", 1, MSG_NOSIGNAL), 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// The leader's part when a process comes while the run goes on, up to its control connection.
Joiner welcome_next(OpenDoor& door, int number) {
  std::vector<Joiner> joiners;
  while (joiners.empty()) {
    joiners = door.take_joiners();
    std::this_thread::sleep_for(milliseconds(1));
  }
  door.welcome(joiners[0], number);
  return std::move(joiners[0]);
}

TEST(Join, ANewMemberComesWhileTheRunGoesOn) {
  const Secret token = secret_of(9);
  LeaderThread leader(2, options_with(token));
  const int port = leader.port();
  JoinedWorld member = join_world(member_at(port), options_with(token));
  JoinedWorld world = leader.world();
  const SocketAddress address = world.members[1].address;
  OpenDoor door(world, {});
  LatePeers peers(member);
  for (const std::uint64_t epoch : {5U, 6U}) {  // the second comes in place of the first
    auto joining = join_in_thread(port, options_with(token));
    const Joiner joiner = welcome_next(door, 2);
    JoinedWorld late = joining.get();
    EXPECT_TRUE(late.has_come_late());
    EXPECT_EQ(late.process, 2);
    LatePeers own(late);
    const auto check = [] {};
    door.expect_calls(epoch);
    auto accepting = std::async(std::launch::async,
                                [&] { return peers.take_calls(2, epoch, seconds(20), check); });
    auto dialling = std::async(std::launch::async, [&] {
      return own.dial({{0, {}}, {1, address}}, epoch, seconds(20), check);
    });
    PeerSockets of_leader = door.take_calls(2, seconds(20), check);
    PeerSockets of_member = accepting.get();
    std::map<int, PeerSockets> of_late = dialling.get();
    ASSERT_EQ(of_late.size(), 2U);
    const auto expect_pair = [](const Descriptor& one, const Descriptor& other) {
      EXPECT_EQ(address_of(one), peer_of(other));
      EXPECT_EQ(address_of(other), peer_of(one));
    };
    expect_pair(of_leader.steps, of_late.at(0).steps);
    expect_pair(of_leader.bulk, of_late.at(0).bulk);
    expect_pair(of_member.steps, of_late.at(1).steps);
    expect_pair(of_member.bulk, of_late.at(1).bulk);
  }
}

TEST(Join, WhoComesLateWithoutTheTokenIsTurnedAwayByAThread) {
  LeaderThread leader(2, options_with(secret_of(9)));
  const int port = leader.port();
  JoinedWorld member = join_world(member_at(port), options_with(secret_of(9)));
  JoinedWorld world = leader.world();
  Told told;
  OpenDoor door(world, told.listen());
  EXPECT_NE(failure_to_join(member_at(port), options_with(secret_of(8))).find("has another token"),
            std::string::npos);
  EXPECT_TRUE(told.has_end("has another token"));
  EXPECT_TRUE(door.take_joiners().empty());
}

TEST(Join, AProcessThatNeverDialsIsNotWaitedForWithoutEnd) {
  LeaderThread leader(2, options_with(std::nullopt));
  JoinedWorld member = join_world(member_at(leader.port()), options_with(std::nullopt));
  JoinedWorld world = leader.world();
  OpenDoor door(world, {});
  LatePeers peers(member);
  door.expect_calls(3);
  EXPECT_THROW((void)door.take_calls(2, milliseconds(100), {}), PeerLost);
  EXPECT_THROW((void)peers.take_calls(2, 3, milliseconds(100), [] {}), PeerLost);
  const auto stop = [] { throw PeerLost("another process is lost"); };
  EXPECT_THROW((void)peers.take_calls(2, 3, seconds(600), stop), PeerLost);
  EXPECT_THROW((void)door.take_calls(2, seconds(600), stop), PeerLost);
}

TEST(Join, ADialOfAnotherEpochOrWithoutTheKeyIsRefused) {
  LeaderThread leader(2, options_with(std::nullopt));
  const int port = leader.port();
  JoinedWorld member = join_world(member_at(port), options_with(std::nullopt));
  JoinedWorld world = leader.world();
  const auto dial = [&](std::uint64_t epoch, const Secret& key) {
    const Descriptor socket = call(port);
    auto door = std::async(std::launch::async, [&] { return world.door->wait(seconds(10)); });
    const Secret nonce = std::get<Challenge>(hear(socket).message).nonce;
    const Dial words{.epoch = epoch, .from = 1, .to = 0, .challenge = nonce};
    say(socket, to_proved_bytes(words, key, ProofPurpose::kDialing, nonce, words.nonce));
    const Arrivals arrivals = door.get();
    EXPECT_TRUE(arrivals.calls.empty());
    return arrivals.refused.empty() ? std::string() : arrivals.refused[0];
  };
  EXPECT_NE(dial(0, secret_of(1)).find("is no peer of this run"), std::string::npos);
  const Secret key = make_proof(Secret{}, ProofPurpose::kSession, world.session, Secret{}, "");
  EXPECT_NE(dial(4, key).find("dials process 0 in epoch 4, expected process 0 in epoch 0"),
            std::string::npos);
}

TEST(Join, BeyondTheLoopbackATokenIsNeeded) {
  LaunchPlace place = leader_of(2);
  place.meeting = LaunchAddress{"192.0.2.1", 4000};
  const std::string words =
      "--token-file: found no token for 192.0.2.1:4000, expected a token, without which no process "
      "listens or joins beyond this host";
  EXPECT_EQ(failure_to_join(place, options_with(std::nullopt)), words);
  place.meeting = LaunchAddress{"0.0.0.0", 4000};
  EXPECT_NE(failure_to_join(place, options_with(std::nullopt)).find("no token"), std::string::npos);
  LaunchPlace member = member_at(4000);
  member.meeting = LaunchAddress{"192.0.2.1", 4000};
  EXPECT_EQ(failure_to_join(member, options_with(std::nullopt)), words);
}

TEST(Join, WhoDoesNotComeIsNamedAtTheLimit) {
  JoinOptions options = options_with(std::nullopt);
  options.limit = milliseconds(200);
  EXPECT_EQ(failure_to_join(leader_of(2), options), "process 1 of 2 did not join in time");
  const int free_port = [] { return address_of(listen_at({})).port; }();
  EXPECT_EQ(failure_to_join(member_at(free_port), options)
                .rfind("no leader listens at 127.0.0.1:" + std::to_string(free_port), 0),
            0U);
}

TEST(Join, AWorldMayBeginWithThoseThatHaveComeInTime) {
  JoinOptions options = options_with(std::nullopt);
  options.limit = seconds(3);
  options.begins_with_fewer = true;
  LeaderThread leader(4, options);
  auto first = join_in_thread(leader.port(), options_with(std::nullopt));
  auto second = join_in_thread(leader.port(), options_with(std::nullopt));
  JoinedWorld one = first.get();
  JoinedWorld other = second.get();
  JoinedWorld world = leader.world();
  EXPECT_EQ(world.processes, 3);
  expect_connected({&world, &one, &other});
}

TEST(Join, AWorldThatMayBeginWithFewerBeginsAlone) {
  JoinOptions options = options_with(std::nullopt);
  options.limit = milliseconds(100);
  options.begins_with_fewer = true;
  LeaderThread leader(3, options);
  JoinedWorld world = leader.world();
  EXPECT_EQ(world.processes, 1);
  EXPECT_NE(world.door, nullptr);
}

TEST(Join, FailedJoiningsLeaveNoFileOpen) {
  const std::size_t before = open_files();
  for (int i = 0; i < 5; ++i) {
    LeaderThread leader(2, options_with(secret_of(9)));
    const int port = leader.port();
    (void)failure_to_join(member_at(port), options_with(secret_of(8)));
    JoinedWorld member = join_world(member_at(port), options_with(secret_of(9)));
    (void)leader.world();
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_TRUE(listening_addresses().empty());
}

// Callers wait at the socket meanwhile.
TEST(Join, WithoutAFreeDescriptorTheDoorTellsItOnceAndPauses) {
  Joiners door(listen_at({}), {.own = facts_of_run(), .leads = true});
  const Descriptor caller = call(door.address().port);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const Descriptor next_free(::dup(caller.number()));
  const rlimit full{static_cast<rlim_t>(next_free.number() + 1), usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  const Arrivals first = door.wait(seconds(20));
  const auto start = std::chrono::steady_clock::now();
  const Arrivals second = door.wait(milliseconds(300));
  const auto waited = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  ASSERT_EQ(first.refused.size(), 1U);
  EXPECT_EQ(first.refused[0].rfind("cannot accept a connection: ", 0), 0U) << first.refused[0];
  EXPECT_TRUE(second.empty());
  EXPECT_GE(waited, milliseconds(300));
  pollfd challenged{caller.number(), POLLIN, 0};
  for (int i = 0; i < 200 && ::poll(&challenged, 1, 0) == 0; ++i) {
    EXPECT_TRUE(door.wait(milliseconds(100)).empty());
  }
  EXPECT_NE(challenged.revents, 0) << "who called meanwhile is let in later";
}

TEST(Join, ALaunchOfOneProcessListensNowhere) {
  LaunchPlace place;
  place.launcher = Launcher::kSlurm;
  place.process = 0;
  const JoinedWorld world = join_world(place, options_with(std::nullopt));
  EXPECT_EQ(world.processes, 1);
  EXPECT_EQ(world.door, nullptr);
  EXPECT_TRUE(listening_addresses().empty());
}

}  // namespace
}  // namespace frazil
