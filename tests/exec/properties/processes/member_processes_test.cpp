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

}  // namespace
}  // namespace frazil
