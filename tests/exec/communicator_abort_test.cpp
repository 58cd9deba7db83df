// After an abort every later call of every rank throws, whatever it is and however many came
// before.

#include <gtest/gtest.h>

#include "tests/exec/random_tensors.h"

namespace frazil {
namespace {

TEST(InProcess, ABarrierAfterAnAbortLetsNobodyThrough) {
  const auto ranks = make_in_process_communicators(2);
  ranks[0]->abort("gone");
  EXPECT_THROW(ranks[0]->barrier(), PeerLost);
  EXPECT_THROW(ranks[1]->barrier(), PeerLost);
  EXPECT_THROW(ranks[1]->barrier(), PeerLost);
}

TEST(InProcess, SendAfterAnAbortThrows) {
  const auto ranks = make_in_process_communicators(2);
  ranks[0]->abort("gone");
  EXPECT_THROW(ranks[1]->send(0, {}, {}), PeerLost);
}

TEST(InProcess, ReceiveAfterAnAbortThrowsEvenIfTheMessageIsThere) {
  const auto ranks = make_in_process_communicators(2);
  ranks[0]->send(1, {}, {});
  ranks[0]->abort("gone");
  EXPECT_THROW((void)ranks[1]->receive(0, {}), PeerLost);
}

}  // namespace
}  // namespace frazil
