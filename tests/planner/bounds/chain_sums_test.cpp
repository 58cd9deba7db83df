// Compares what some of the devices hold at least, as ChainSums says, with sorting the layers.

#include "planner/bounds/chain_sums.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/planner/support/search_cases.h"

namespace frazil {
namespace {

struct Parts {
  std::vector<ChainSums::Load> loads;  // most work first
  std::size_t active = 0;

  // Returns the least work and the least gradients of any `count` of the first `among` layers.
  ChainSums::Load least(std::size_t among, std::size_t count) const {
    std::vector<Duration> works;
    std::vector<Bytes> gradients;
    for (std::size_t i = 0; i < among; ++i) {
      works.push_back(loads[i].work);
      gradients.push_back(loads[i].updated_parameters);
    }
    std::sort(works.begin(), works.end());
    std::sort(gradients.begin(), gradients.end());
    ChainSums::Load sum;
    for (std::size_t i = 0; i < count; ++i) {
      sum.work += works[i];
      sum.updated_parameters += gradients[i];
    }
    return sum;
  }
};

Parts list_parts(const ChainSums& sums, std::size_t ways, bool recompute) {
  Parts parts;
  for (int l = 0; l < sums.layers(); ++l) {
    const LayerSpan layer{l, l + 1};
    for (std::size_t way = 0; way < ways; ++way) {
      parts.loads.push_back({sums.work(layer, recompute), sums.updated_parameters(layer)});
      parts.active += sums.has_backward(layer) ? 1 : 0;
    }
  }
  std::stable_sort(
      parts.loads.begin(), parts.loads.end(),
      [](const ChainSums::Load& a, const ChainSums::Load& b) { return a.work > b.work; });
  return parts;
}

TEST(ChainSums, ACrowdHoldsTheLeastPartsOfThoseWithTheMostWork) {
  int gradients = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const SearchQuestion question = draw_search_question(seed);
    const ChainSums sums(question.profile, find_activity(question.profile, question.options.mask),
                         1);
    for (const bool one_way : {false, true}) {
      for (const bool recompute : {false, true}) {
        const std::size_t ways = one_way ? 1 : 2;
        const Parts parts = list_parts(sums, ways, recompute);
        for (int devices = 1; devices <= sums.layers(); ++devices) {
          const ChainSums::Pigeonhole& pigeonhole = sums.pigeonhole(devices, one_way, recompute);
          const auto count = static_cast<std::size_t>(devices);
          ChainSums::Load one;
          for (std::size_t k = 1; (k - 1) * count < parts.loads.size(); ++k) {
            const ChainSums::Load least = parts.least((k - 1) * count + 1, k);
            if (k == 1 || least.work > one.work) one = least;
          }
          const int of_way = static_cast<int>(ways);
          EXPECT_EQ(pigeonhole.one.work, one.work / of_way);
          EXPECT_EQ(pigeonhole.one.updated_parameters, one.updated_parameters);
          const auto part_of = [&](std::size_t j) {
            return parts.least(j, (j + count - 1) / count).work;
          };
          const std::size_t all = parts.loads.size();
          const bool few = parts.active > 0 && part_of(parts.active) > part_of(all);
          const std::size_t among = few ? parts.active : all;
          const std::size_t part = (among + count - 1) / count;
          const ChainSums::Load even = parts.least(among, part);
          const ChainSums::Load more = parts.least(among, std::min(among, part + 1));
          EXPECT_EQ(pigeonhole.even.work, even.work / of_way);
          EXPECT_EQ(pigeonhole.even.updated_parameters, even.updated_parameters);
          EXPECT_EQ(pigeonhole.more.work, more.work / of_way);
          EXPECT_EQ(pigeonhole.more.updated_parameters, more.updated_parameters);
          EXPECT_EQ(pigeonhole.holders, static_cast<int>(among - count * (part - 1)));
          gradients += more.updated_parameters > Bytes{} ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(gradients, 500);
}

}  // namespace
}  // namespace frazil
