// The fake NCCL keeps the rules of the real one, and finds who breaks them: a test over it is worth
// what it refuses.

#include "tests/exec/communication/fake_nccl.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace frazil {
namespace {

const NcclTable& nccl() { return fake_nccl(); }

class FakeNccl : public testing::Test {
 protected:
  void SetUp() override { reset_fake_nccl(); }
  void TearDown() override {
    for (const NcclEnd end : ends_) nccl().abort(end);
    for (const NcclMark mark : marks_) nccl().forget(mark);
  }

  std::vector<NcclEnd> open(int ranks) {
    const NcclId id = nccl().make_id();
    std::vector<NcclEnd> ends;
    for (int rank = 0; rank < ranks; ++rank) {
      ends.push_back(nccl().init(id, {.gpu = rank, .ranks = ranks, .rank = rank}));
      ends_.push_back(ends.back());
    }
    for (const NcclEnd end : ends) wait_ready(end);
    return ends;
  }

  static void wait_ready(NcclEnd end) {
    int asked = 0;
    while (nccl().poll(end).state != NcclState::kReady) ASSERT_LT(++asked, 5);
    EXPECT_GE(asked, 1) << "nothing is ready at once";
  }

  // Gives the end a group and returns the moment at which it is done.
  NcclMark give(NcclEnd end, const std::function<void()>& operations) {
    nccl().group_start();
    operations();
    nccl().group_end();
    wait_ready(end);
    marks_.push_back(nccl().mark(end));
    return marks_.back();
  }

  void keep(NcclEnd end) { ends_.push_back(end); }

 private:
  std::vector<NcclEnd> ends_;
  std::vector<NcclMark> marks_;
};

TEST_F(FakeNccl, ASendHoldsItsStreamUpUntilTheReceiveIsThere) {
  const auto ends = open(3);
  const at::Tensor first = at::full({4}, 1);
  const at::Tensor second = at::full({4}, 2);
  const at::Tensor into = at::zeros({4}, at::kLong);
  const NcclMark to_1 = give(ends[0], [&] { nccl().send(ends[0], first, 1); });
  const NcclMark to_2 = give(ends[0], [&] { nccl().send(ends[0], second, 2); });
  const NcclMark at_2 = give(ends[2], [&] { nccl().receive(ends[2], into, 0); });
  EXPECT_FALSE(nccl().is_done(to_1));
  EXPECT_FALSE(nccl().is_done(to_2)) << "it stands behind the first";
  EXPECT_FALSE(nccl().is_done(at_2));
  const NcclMark at_1 = give(ends[1], [&] { nccl().receive(ends[1], at::zeros_like(into), 0); });
  for (const NcclMark mark : {to_1, to_2, at_1, at_2}) EXPECT_TRUE(nccl().is_done(mark));
  EXPECT_TRUE(into.equal(second));
}

TEST_F(FakeNccl, TwoWhoSendFirstWaitForEverButNotInAGroup) {
  const auto ends = open(2);
  const at::Tensor one = at::ones({4});
  const at::Tensor into = at::zeros({4});
  const NcclMark a = give(ends[0], [&] { nccl().send(ends[0], one, 1); });
  const NcclMark b = give(ends[1], [&] { nccl().send(ends[1], one, 0); });
  (void)give(ends[0], [&] { nccl().receive(ends[0], into, 1); });
  (void)give(ends[1], [&] { nccl().receive(ends[1], into, 0); });
  EXPECT_FALSE(nccl().is_done(a));
  EXPECT_FALSE(nccl().is_done(b));
  const auto others = open(2);
  std::vector<NcclMark> marks;
  for (std::size_t rank : {0UL, 1UL}) {
    marks.push_back(give(others[rank], [&] {
      nccl().send(others[rank], one, 1 - static_cast<int>(rank));
      nccl().receive(others[rank], at::zeros({4}), 1 - static_cast<int>(rank));
    }));
  }
  EXPECT_TRUE(nccl().is_done(marks[0]));
  EXPECT_TRUE(nccl().is_done(marks[1]));
}

TEST_F(FakeNccl, FindsWhatBreaksItsRules) {
  const auto ends = open(2);
  const at::Tensor one = at::ones({4});
  nccl().send(ends[0], one, 1);  // in no group
  (void)give(ends[0], [&] { nccl().send(ends[0], one, 1); });
  std::thread([&] { (void)nccl().poll(ends[0]); }).join();
  nccl().group_start();
  nccl().receive(ends[1], at::zeros({5}), 0);
  nccl().group_end();
  EXPECT_EQ(
      fake_nccl_violations(),
      (std::vector<std::string>{"an operation stands in no group", "GPU 0 is served by two threads",
                                "a message of 16 bytes meets a receive of 20"}));
  EXPECT_EQ(nccl().poll(ends[1]).state, NcclState::kFailed);
}

TEST_F(FakeNccl, CommunicatorsAreSplitShrunkAndRevoked) {
  const auto ends = open(4);
  std::vector<NcclEnd> halves;
  for (int rank = 0; rank < 4; ++rank) {
    halves.push_back(nccl().split(ends[static_cast<std::size_t>(rank)], rank % 2, -rank));
    keep(halves.back());
  }
  for (const NcclEnd half : halves) wait_ready(half);
  // Rank 2 is the first of the even ones, by its key.
  const at::Tensor told = at::zeros({1});
  const NcclMark sent = give(halves[2], [&] { nccl().send(halves[2], at::ones({1}), 1); });
  (void)give(halves[0], [&] { nccl().receive(halves[0], told, 0); });
  EXPECT_TRUE(nccl().is_done(sent));
  EXPECT_EQ(told.item<float>(), 1);

  // Rank 3 is lost; rank 0 was inside an operation with it.
  (void)give(ends[0], [&] { nccl().send(ends[0], at::ones({1}), 3); });
  std::vector<NcclEnd> rest;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    rest.push_back(nccl().shrink(ends[rank], {3}, /*aborts=*/true));
    keep(rest.back());
  }
  for (const NcclEnd end : rest) wait_ready(end);
  std::vector<at::Tensor> sums;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    sums.push_back(at::full({2}, static_cast<double>(rank)));
    (void)give(rest[rank], [&] { nccl().all_reduce(rest[rank], sums[rank]); });
  }
  for (const at::Tensor& sum : sums) EXPECT_TRUE(sum.equal(at::full({2}, 3.0)));

  nccl().revoke(rest[0]);
  wait_ready(rest[0]);
  nccl().group_start();
  EXPECT_THROW(nccl().all_reduce(rest[0], sums[0]), std::runtime_error);
  nccl().group_end();
  EXPECT_EQ(fake_nccl_violations(), std::vector<std::string>());
}

TEST_F(FakeNccl, CollectivesShareOutAndGather) {
  const auto ends = open(2);
  std::vector<at::Tensor> own;
  std::vector<at::Tensor> all;
  for (std::size_t rank : {0UL, 1UL}) {
    own.push_back(at::zeros({2}, at::kLong));
    all.push_back(at::zeros({4}, at::kLong));
    (void)give(ends[rank], [&] {
      nccl().reduce_scatter(ends[rank], at::arange(4) * static_cast<int>(rank + 1), own[rank]);
    });
  }
  EXPECT_TRUE(own[1].equal(at::tensor({6, 9})));
  for (std::size_t rank : {0UL, 1UL}) {
    (void)give(ends[rank], [&] { nccl().all_gather(ends[rank], own[rank], all[rank]); });
  }
  EXPECT_TRUE(all[0].equal(at::arange(4) * 3));
  for (std::size_t rank : {0UL, 1UL}) {
    (void)give(ends[rank], [&] { nccl().broadcast(ends[rank], own[rank], 1); });
  }
  EXPECT_TRUE(own[0].equal(own[1]));
  nccl().group_start();
  nccl().all_reduce(ends[0], own[0]);
  EXPECT_GT(nccl().simulate_end(), 0);
}

}  // namespace
}  // namespace frazil
