// What a leader has of the processes that it begins itself, and what processes of a run have of one
// that is there no more.

#include "exec/train/processes/member_processes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "exec/links/passed_sockets.h"
#include "exec/links/socket.h"
#include "exec/train/processes/run_world.h"

namespace frazil {
namespace {

constexpr std::uint32_t kEpoch = 7;

void pass_pair(const Descriptor& to, std::uint32_t epoch, int process) {
  SocketPair steps = make_socket_pair();
  SocketPair bulk = make_socket_pair();
  pass_sockets(to, {epoch, process, {std::move(steps[0]), std::move(bulk[0])}});
}

TEST(TakeFromLeader, GivesTheSocketsOfWhoIsIntroducedAndOfNobodyElse) {
  SocketPair passage = make_socket_pair();
  pass_pair(passage[0], kEpoch - 1, 2);  // for a world that never began
  pass_pair(passage[0], kEpoch, 3);      // as well
  pass_pair(passage[0], kEpoch, 2);
  const LateSockets take = take_from_leader(1, std::move(passage[1]));
  const std::map<int, PeerSockets> taken =
      take({.process = 2, .epoch = kEpoch, .others = {0, 1}, .addresses = {}}, [] {});
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken.begin()->first, 2);
}

// A step lies between two looks for vacant places.
TEST(MemberProcesses, BeginAProcessAnewThreeTimesUnlessItTakesPart) {
  MemberProcesses members(1);
  const RunDoor door = members.door();
  const std::set<int> vacant{1};
  std::uint32_t epoch = 1;
  const auto begin = [&] { return door.let_in(vacant).size(); };
  const auto introduce = [&] { (void)door.introduce(1, epoch++, {0}); };
  EXPECT_EQ(begin(), 1U);
  introduce();
  EXPECT_EQ(door.let_in({}).size(), 0U);  // it is there, and the count begins again
  for (int start = 0; start < 3; ++start) {
    EXPECT_EQ(begin(), 1U) << start;
    introduce();  // and it ends while it connects
  }
  EXPECT_EQ(begin(), 0U);
}

TEST(JoinOverLinks, LetsGoOfWhatALeftProcessHasBorrowed) {
  auto mesh = make_socket_pairs(2);
  const LinkOptions patient{.linger = std::chrono::seconds(100)};
  auto links = std::make_shared<PeerLinks>(std::move(mesh[0]), patient);
  PeerLinks stopped(std::move(mesh[1]), {.linger = std::chrono::milliseconds(1)});
  for (int round = 0; round < 2; ++round) {
    links->look();
    stopped.look();
  }
  links->look();
  if (!links->lends_to(1)) GTEST_SKIP() << "the system lets no process read another's memory";
  const RunWorld::Join join = join_over_links(links, 0, /*has_core_per_rank=*/false);
  const at::Tensor lent = at::ones({1 << 20});
  {
    const auto world = join(1, {0, 1}, {});
    world[0]->send(1, {.kind = MessageKind::kProbe}, {lent});
    EXPECT_GT(lent.use_count(), 1U) << "who has stopped has not read it";
    const auto next = join(2, {0, -1}, {});
    EXPECT_EQ(lent.use_count(), 1U);
  }
  const auto start = std::chrono::steady_clock::now();
  links.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50))
      << "the end waits for a process that was left behind";
}

}  // namespace
}  // namespace frazil
