// Waits that can never end are errors, at once where the world sees all waits and else at the
// deadline; all others are left alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <tuple>

#include "tests/exec/communication/worlds.h"
#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

using Kind = CommunicationFault::Kind;

Tag probe(std::int32_t index, Step step = 0) { return {.index = index, .step = step}; }

void expect_all(const std::vector<RankFailure>& failures, Kind kind,
                const std::vector<std::string>& either) {
  for (const RankFailure& failure : failures) {
    EXPECT_EQ(failure.sentence, failures[0].sentence) << "one cause for all";
    ASSERT_TRUE(failure.fault) << failure.sentence;
    EXPECT_EQ(failure.fault->kind, kind);
  }
  EXPECT_NE(std::find(either.begin(), either.end(), failures[0].sentence), either.end())
      << failures[0].sentence;
}

class CommunicatorDeadlock : public WorldTest {
 protected:
  // A world of ranks that will wait in a ring.
  static Ranks make_ring(int ranks) {
    return GetParam().sees_all_waits
               ? make_world(ranks)
               : make_world(ranks, {.deadline = std::chrono::milliseconds(100)});
  }
  // Where not all waits are seen, a rank of the ring is over its deadline.
  static void expect_ring(const std::vector<RankFailure>& failures,
                          const std::vector<std::string>& either) {
    if (GetParam().sees_all_waits) return expect_all(failures, Kind::kDeadlock, either);
    ASSERT_TRUE(failures[0].fault) << failures[0].sentence;
    expect_all(failures, failures[0].fault->kind, {failures[0].sentence});
  }
};
IN_COMMON_WORLDS(CommunicatorDeadlock);

TEST_P(CommunicatorDeadlock, OfTwoRanksThatEachReceiveFirstIsNamed) {
  const Ranks ranks = make_ring(2);
  const auto failures = failures_of(ranks, [](Communicator& self) {
    const int peer = 1 - self.rank();
    (void)self.receive(peer, probe(peer));
    self.send(peer, probe(self.rank()), {});
  });
  expect_ring(failures,
              {"rank 0 waits for probe 1 (step 0) from rank 1, which waits for probe 0 (step 0) "
               "from rank 0",
               "rank 1 waits for probe 0 (step 0) from rank 0, which waits for probe 1 (step 0) "
               "from rank 1"});
}

TEST_P(CommunicatorDeadlock, OfThreeRanksInARingIsNamedWhoeverComesLast) {
  const Ranks ranks = make_ring(3);
  const auto failures = failures_of(
      ranks, [](Communicator& self) { (void)self.receive((self.rank() + 1) % 3, probe(7)); });
  std::vector<std::string> either;
  for (int first = 0; first < 3; ++first) {
    const auto name = [&](int offset) { return "rank " + std::to_string((first + offset) % 3); };
    either.push_back(name(0) + " waits for probe 7 (step 0) from " + name(1) +
                     ", which waits for probe 7 (step 0) from " + name(2) +
                     ", which waits for probe 7 (step 0) from " + name(0));
  }
  expect_ring(failures, either);
}

TEST_P(CommunicatorDeadlock, OfABarrierAndAReceiveIsNamed) {
  const Ranks ranks = make_ring(2);
  const auto failures = failures_of(ranks, [](Communicator& self) {
    if (self.rank() == 0) self.barrier();
    (void)self.receive(1 - self.rank(), probe(0));
  });
  expect_ring(
      failures,
      {"rank 0 waits at a barrier for rank 1, which waits for probe 0 (step 0) from rank 0",
       "rank 1 waits for probe 0 (step 0) from rank 0, which waits at a barrier for rank 1"});
}

TEST_P(CommunicatorDeadlock, ABarrierWithARankThatHasLeftIsNamed) {
  const Ranks ranks = make_world(3);
  const auto failures = failures_of(ranks, [](Communicator& self) {
    if (self.rank() == 1) return self.leave();
    self.barrier();
  });
  EXPECT_EQ(failures[1].sentence, "");
  expect_all({failures[0], failures[2]}, Kind::kPeerLeft,
             {"rank 0 waits at a barrier for rank 1, which has left",
              "rank 2 waits at a barrier for rank 1, which has left"});
}

TEST_P(CommunicatorDeadlock, APeerThatLeavesFailsWhoWaitsForIt) {
  Ranks ranks = make_world(2);
  const auto failures = failures_of(ranks, [&](Communicator& self) {
    if (self.rank() == 0) return ranks[0].reset();
    (void)self.receive(0, probe(4, 2));
  });
  expect_all({failures[1]}, Kind::kPeerLeft,
             {"rank 1 waits for probe 4 (step 2) from rank 0, which has left"});
}

TEST_P(CommunicatorDeadlock, WhoHasDoneItsPartFailsWhoStillWaitsInThatJobAndNobodyInTheNext) {
  const Ranks ranks = make_world(2);
  const auto failures = failures_of(ranks, [](Communicator& self) {
    for (Step job = 0; job < 2; ++job) {
      if (self.rank() == 0) {
        self.send(1, probe(0, job), {});
      } else {
        (void)self.receive(0, probe(0, job));
        if (job == 1) (void)self.receive(0, probe(1, job));
      }
      self.finish();
    }
  });
  EXPECT_EQ(failures[0].sentence, "");
  EXPECT_EQ(failures[1].sentence,
            "rank 1 waits for probe 1 (step 1) from rank 0, which has ended its part");
}

TEST_P(CommunicatorDeadlock, JobsThatRanksFinishAtDifferentTimesFailNobody) {
  const Ranks ranks = make_world(3);
  const auto failures = failures_of(ranks, [](Communicator& self) {
    for (Step step = 0; step < 300; ++step) {
      if (self.rank() > 0) (void)self.receive(self.rank() - 1, probe(0, step % 8));
      if (self.rank() < 2) self.send(self.rank() + 1, probe(0, step % 8), {});
      if (step % 7 == 0) self.barrier();
      self.finish();
    }
  });
  EXPECT_EQ(sentences_of(failures), std::vector<std::string>(3));
}

// A call of a rank is a send, a receive or a barrier; `index` numbers the messages of all ranks.
struct Call {
  enum class Kind { kSend, kReceive, kBarrier } kind = Kind::kBarrier;
  int peer = 0;
  std::int32_t index = 0;
};
using Programs = std::vector<std::vector<Call>>;

// Draws the calls of a legal run, some of which are then swapped or left out.
Programs draw_programs(std::mt19937_64& engine) {
  const auto draw = [&](int bound) {
    return static_cast<int>(engine() % static_cast<std::uint64_t>(bound));
  };
  const int ranks = 2 + draw(4);
  Programs programs(static_cast<std::size_t>(ranks));
  for (std::int32_t i = 0; i < 25; ++i) {
    if (draw(12) == 0) {
      for (auto& program : programs) program.push_back({});
      continue;
    }
    const int from = draw(ranks);
    const int to = (from + 1 + draw(ranks - 1)) % ranks;
    programs[static_cast<std::size_t>(from)].push_back({Call::Kind::kSend, to, i});
    programs[static_cast<std::size_t>(to)].push_back({Call::Kind::kReceive, from, i});
  }
  for (int change = draw(5); change > 0; --change) {
    auto& program = programs[static_cast<std::size_t>(draw(ranks))];
    if (program.empty()) continue;
    const auto place = program.begin() + draw(static_cast<int>(program.size()));
    if (draw(4) == 0) {
      program.erase(place);
    } else {
      std::swap(*place, program[static_cast<std::size_t>(draw(static_cast<int>(program.size())))]);
    }
  }
  return programs;
}

// Returns whether all ranks reach their end, one call at a time and without threads.
bool comes_to_an_end(const Programs& programs) {
  std::vector<std::size_t> next(programs.size(), 0);
  std::map<std::tuple<int, int, std::int32_t>, bool> sent;
  const auto at_barrier = [&](std::size_t rank) {
    return next[rank] < programs[rank].size() &&
           programs[rank][next[rank]].kind == Call::Kind::kBarrier;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      const int self = static_cast<int>(rank);
      while (next[rank] < programs[rank].size() && !at_barrier(rank)) {
        const Call& call = programs[rank][next[rank]];
        if (call.kind == Call::Kind::kSend) sent[{self, call.peer, call.index}] = true;
        if (call.kind == Call::Kind::kReceive && !sent[{call.peer, self, call.index}]) break;
        ++next[rank];
        moved = true;
      }
    }
    bool all = true;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) all = all && at_barrier(rank);
    for (std::size_t& place : next) place += all ? 1 : 0;
    moved = moved || all;
  }
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    if (next[rank] < programs[rank].size()) return false;
  }
  return true;
}

void play(Communicator& self, const std::vector<Call>& program, std::mt19937_64 engine) {
  for (const Call& call : program) {
    if (engine() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(engine() % 200));
    switch (call.kind) {
      case Call::Kind::kSend:
        self.send(call.peer, probe(call.index), {});
        break;
      case Call::Kind::kReceive:
        (void)self.receive(call.peer, probe(call.index));
        break;
      case Call::Kind::kBarrier:
        self.barrier();
        break;
    }
  }
  self.leave();
}

class CommunicatorDeadlockByTag : public WorldTest {};
IN_WORLDS_BY_TAG(CommunicatorDeadlockByTag);

TEST_P(CommunicatorDeadlockByTag, IsFoundInRandomProgramsExactlyWhenOneRankAtATimeFindsIt) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  const bool at_once = GetParam().sees_all_waits;
  const Duration deadline =
      at_once ? Duration(std::chrono::minutes(10)) : Duration(std::chrono::milliseconds(500));
  const std::uint64_t rounds = at_once ? 200 : 16;
  std::uint64_t dead = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::mt19937_64 engine(seed + round);
    const Programs programs = draw_programs(engine);
    const Ranks ranks =
        make_world(static_cast<int>(programs.size()), {.deadline = deadline, .check_order = false});
    const auto failures = failures_of(ranks, [&](Communicator& self) {
      const auto rank = static_cast<std::size_t>(self.rank());
      play(self, programs[rank], std::mt19937_64(seed + 31 * round + rank));
    });
    std::string cause;
    for (const RankFailure& failure : failures) {
      if (failure.sentence.empty()) continue;
      if (cause.empty()) cause = failure.sentence;
      EXPECT_EQ(failure.sentence, cause);
      ASSERT_TRUE(failure.fault) << failure.sentence;
      EXPECT_FALSE(at_once && failure.fault->kind == Kind::kDeadline);
    }
    ASSERT_EQ(cause.empty(), comes_to_an_end(programs)) << "seed " << seed + round << ": " << cause;
    dead += cause.empty() ? 0 : 1;
  }
  EXPECT_GT(dead, rounds / 20);
  EXPECT_LT(dead, rounds - rounds / 20);
}

}  // namespace
}  // namespace frazil
