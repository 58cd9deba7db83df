// Compares the bounds that batch deals give on the largest share and on the gradient tree with
// every contiguous deal of small batches.

#include "planner/bounds/batch_deals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

// A deal as its groups see it: the most whole micro-batches of a group, and the most nodes of the
// gradient tree that one owner sends, in either direction.
struct DealtBatch {
  int most_whole = 0;
  int most_nodes = 0;
};

struct Question {
  int batch = 1;
  int size = 1;
  int groups = 1;
  int ways = 1;
  bool exact = true;

  int micro_batches() const { return (batch + size - 1) / size; }
};

// Counts the nodes of the gradient tree that a group with micro-batches [first, end) sends. Each
// direction has half of the micro-batches (the second may have one more) and sends the largest
// subtrees that it owns.
int count_nodes(const Question& question, int first, int end) {
  const int half = question.ways == 1 ? end : first + (end - first) / 2;
  int most = 0;
  for (const TreeNode& owned : {TreeNode{first, half}, TreeNode{half, end}}) {
    if (owned.leaves() == 0) continue;
    const auto nodes = maximal_nodes({owned}, question.micro_batches());
    most = std::max(most, static_cast<int>(nodes.size()));
  }
  return most;
}

DealtBatch deal(const Question& question, const std::vector<int>& shares) {
  DealtBatch dealt;
  const int whole = question.batch / question.size;
  int first = 0;
  for (const int share : shares) {
    dealt.most_whole = std::max(dealt.most_whole, std::min(first + share, whole) - first);
    dealt.most_nodes = std::max(dealt.most_nodes, count_nodes(question, first, first + share));
    first += share;
  }
  return dealt;
}

// Lists every way to give contiguous shares to the groups so that no direction is without a
// micro-batch.
void list_shares(const Question& question, int left, std::vector<int>& shares,
                 std::vector<std::vector<int>>& all) {
  const int groups_left = question.groups - static_cast<int>(shares.size());
  if (groups_left == 1) {
    if (left < question.ways) return;
    shares.push_back(left);
    all.push_back(shares);
    shares.pop_back();
    return;
  }
  for (int share = question.ways; share <= left; ++share) {
    shares.push_back(share);
    list_shares(question, left - share, shares, all);
    shares.pop_back();
  }
}

bool allows(const std::vector<BatchDeal>& promised, const DealtBatch& dealt) {
  return std::any_of(promised.begin(), promised.end(), [&](const BatchDeal& deal) {
    return dealt.most_whole >= deal.micro_batches && dealt.most_nodes >= deal.nodes;
  });
}

Question draw_question(std::mt19937_64& random) {
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Question question;
  question.size = number(1, 3);
  question.batch = number(question.size, 12 * question.size);
  question.ways = number(1, 2);
  question.exact = number(1, 5) > 1;
  question.groups = number(1, std::min(5, question.micro_batches()));
  return question;
}

SearchOptions options_of(const Question& question) {
  SearchOptions options;
  options.batch_size = question.batch;
  options.micro_batch_sizes = {question.size};
  options.reduction = question.exact ? ReductionMode::kExact : ReductionMode::kFast;
  options.joint = true;
  return options;
}

ShapeCell cell_of(const Question& question) {
  return {
      .devices = 2, .replicas = question.groups, .longer = 0, .micro_batch_size = question.size};
}

// Makes devices, of which the first is slower unless all are `alike`: groups that differ may get
// any share.
Cluster make_devices(int devices, bool alike) {
  Cluster cluster = make_uniform_cluster(devices, Bytes{1'000'000}, {});
  if (!alike) cluster.devices.front().time_ppm = 2'000'000;
  return cluster;
}

TEST(BatchDeals, AllowEveryContiguousDealToUnequalGroups) {
  std::int64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Question question = draw_question(random);
    const Cluster cluster = make_devices(2 * question.groups, /*alike=*/false);
    const SearchOptions options = options_of(question);
    const DeviceGroupClasses device_classes(cluster, true);
    const SearchSpace space{4, static_cast<int>(cluster.devices.size()),
                            device_classes.arrangements(), options};
    const BatchDeals deals(space, device_classes);
    const auto promised = deals.list(cell_of(question), question.ways);
    std::vector<int> shares;
    std::vector<std::vector<int>> all;
    list_shares(question, question.micro_batches(), shares, all);
    for (const std::vector<int>& each : all) {
      ++compared;
      EXPECT_TRUE(allows(promised, deal(question, each)))
          << ::testing::PrintToString(each) << " of " << question.micro_batches() << ", "
          << question.ways << " ways";
    }
  }
  EXPECT_GT(compared, 20'000);
}

// The bounds are as small as they may be: no deal of whole nodes has a smaller largest share than
// the bound for one node each, and some deal meets the mean.
TEST(BatchDeals, PromiseNoMoreThanSomeDealOfWholeNodesAndNoLessThanTheMean) {
  int whole_nodes = 0;
  for (std::uint64_t seed = 1001; seed <= 1600; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Question question = draw_question(random);
    question.exact = true;
    question.ways = 1;
    const Cluster cluster = make_devices(2 * question.groups, /*alike=*/false);
    const SearchOptions options = options_of(question);
    const DeviceGroupClasses device_classes(cluster, true);
    const SearchSpace space{4, static_cast<int>(cluster.devices.size()),
                            device_classes.arrangements(), options};
    const auto promised = BatchDeals(space, device_classes).list(cell_of(question), 1);
    const int whole = question.batch / question.size;
    for (const BatchDeal& own : promised) {
      EXPECT_GE(own.micro_batches * question.groups, whole);
    }
    std::vector<int> shares;
    std::vector<std::vector<int>> all;
    list_shares(question, question.micro_batches(), shares, all);
    int least = question.micro_batches();
    for (const std::vector<int>& each : all) {
      const DealtBatch dealt = deal(question, each);
      if (dealt.most_nodes == 1) least = std::min(least, dealt.most_whole);
    }
    for (const BatchDeal& own : promised) {
      if (own.nodes != 1) continue;
      ++whole_nodes;
      EXPECT_LE(own.micro_batches, least);
    }
  }
  EXPECT_GT(whole_nodes, 100);
}

TEST(BatchDeals, OfEqualGroupsAreTheDealTheyGet) {
  for (std::uint64_t seed = 2001; seed <= 2600; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Question question = draw_question(random);
    if (question.micro_batches() / question.ways < question.groups) continue;
    const Cluster cluster = make_devices(2 * question.groups, /*alike=*/true);
    const SearchOptions options = options_of(question);
    const DeviceGroupClasses device_classes(cluster, true);
    const SearchSpace space{4, static_cast<int>(cluster.devices.size()),
                            device_classes.arrangements(), options};
    const int units = question.micro_batches() / question.ways;
    // The short micro-batch is the last of the last group, which then has one micro-batch more.
    const bool has_short = options.batch_size % options.micro_batch_sizes.front() != 0;
    const bool to_the_last = has_short && question.micro_batches() % question.ways == 0;
    std::vector<int> shares;
    for (int g = 0; g < question.groups; ++g) {
      const int place = to_the_last ? question.groups - 1 - g : g;
      const int more = place < units % question.groups ? 1 : 0;
      shares.push_back(question.ways * (units / question.groups + more));
    }
    shares.back() += question.micro_batches() % question.ways;
    EXPECT_TRUE(allows(BatchDeals(space, device_classes).list(cell_of(question), question.ways),
                       deal(question, shares)));
  }
}

}  // namespace
}  // namespace frazil
