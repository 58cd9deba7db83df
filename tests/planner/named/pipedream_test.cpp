#include "planner/named/pipedream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "profiles/error.h"
#include "tests/support/pipedream_graph.h"

namespace frazil {
namespace {

OperatorGraph make_chain_graph(const std::vector<int>& compute) {
  OperatorGraph graph;
  for (const int time : compute) graph.operators.push_back({Duration{time}, {}, {}});
  for (std::size_t i = 1; i < compute.size(); ++i) {
    graph.edges.emplace_back(static_cast<int>(i) - 1, static_cast<int>(i));
  }
  return graph;
}

// Reads what PipeDream's optimizer reads of a profile: it leaves out inputs, and sinks that only
// pick an item.
OperatorGraph read_operators(const std::filesystem::path& path) {
  const PipeDreamGraph read = read_pipedream_graph(path);
  std::vector<int> kept(read.nodes.size(), -1);
  std::vector<bool> has_reader(read.nodes.size(), false);
  for (const auto& [from, to] : read.edges) has_reader[static_cast<std::size_t>(from)] = true;
  OperatorGraph graph;
  for (std::size_t n = 0; n < read.nodes.size(); ++n) {
    const GraphNode& node = read.nodes[n];
    if (node.description.starts_with("Input")) continue;
    if (node.description.starts_with("__getitem__") && !has_reader[n]) continue;
    kept[n] = static_cast<int>(graph.operators.size());
    graph.operators.push_back({node.forward + node.backward, node.activation, node.parameters});
  }
  for (const auto& [from, to] : read.edges) {
    const int a = kept[static_cast<std::size_t>(from)];
    const int b = kept[static_cast<std::size_t>(to)];
    if (a >= 0 && b >= 0) graph.edges.emplace_back(a, b);
  }
  return graph;
}

TEST(AntichainStates, AreThePrefixesOfAChain) {
  const auto states = find_antichain_states(make_chain_graph({3, 5, 7}));
  ASSERT_EQ(states.size(), 3U);
  EXPECT_EQ(states[1].done, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(states[1].compute, Duration{8});
  EXPECT_EQ(states[2].before, (std::vector<int>{0, 1}));
}

//     1
//   0   3     what 0 puts out is read beyond a branch until both branches are done
//     2
TEST(AntichainStates, HoldWhatIsStillReadBeyondThem) {
  OperatorGraph graph = make_chain_graph({1, 2, 4, 8});
  graph.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  for (std::size_t i = 0; i < 4; ++i) graph.operators[i].activation = Bytes{1 << i};
  const auto states = find_antichain_states(graph);
  std::vector<std::pair<std::int64_t, std::int64_t>> found;  // compute, output
  for (const AntichainState& state : states) {
    found.emplace_back(state.compute.count(), state.output.count);
  }
  std::sort(found.begin(), found.end());
  // The states are {0}, {1} with 0, {2} with 0, {1, 2} with 0, and {3}.
  EXPECT_EQ(found, (std::vector<std::pair<std::int64_t, std::int64_t>>{
                       {1, 1}, {3, 3}, {5, 5}, {7, 7}, {15, 8}}));
}

TEST(AntichainStates, AreRefusedWhereThereAreTooMany) {
  OperatorGraph graph;
  graph.operators.resize(18);
  for (int i = 1; i < 17; ++i) {
    graph.edges.emplace_back(0, i);
    graph.edges.emplace_back(i, 17);
  }
  EXPECT_THROW(find_antichain_states(graph), InfeasibleError);
}

// Evaluates the formula of the header over all ways to cut a chain and to deal machines.
struct ChainOracle {
  const OperatorGraph& graph;
  PipeDreamLevel level;
  bool straight;

  std::int64_t transfer(std::int64_t factor, Bytes size, int machines) const {
    return level.bandwidth.count == 0
               ? 0
               : factor * size.count * 1'000'000'000 / (level.bandwidth.count * machines);
  }
  std::int64_t stage(std::size_t first, std::size_t end, int machines) const {
    std::int64_t time = 0;
    Bytes parameters;
    for (std::size_t i = first; i < end; ++i) {
      time += graph.operators[i].compute.count();
      parameters += graph.operators[i].parameters;
    }
    std::int64_t longest = (time + transfer(4 * (machines - 1), parameters, machines)) / machines;
    // The first stage's output is charged to its reader alone.
    if (first == 0) return longest;
    longest = std::max(longest, transfer(2, graph.operators[first - 1].activation, machines));
    if (end < graph.operators.size()) {
      longest = std::max(longest, transfer(2, graph.operators[end - 1].activation, machines));
    }
    return longest;
  }
  std::int64_t best(std::size_t end, int machines) const {
    const bool may_be_one = !straight || machines == 1;
    std::int64_t least =
        may_be_one ? stage(0, end, machines) : std::numeric_limits<std::int64_t>::max();
    for (std::size_t cut = 1; cut < end; ++cut) {
      for (int last = 1; last < (straight ? 2 : machines); ++last) {
        if (last >= machines) break;
        least = std::min(least, std::max(best(cut, machines - last), stage(cut, end, last)));
      }
    }
    return least;
  }
};

TEST(PipeDream, FindsTheBestOfItsFormulaOnChains) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    OperatorGraph graph = make_chain_graph(std::vector<int>(random() % 6 + 1, 0));
    for (Operator& each : graph.operators) {
      each.compute = Duration{static_cast<Duration::rep>(random() % 1000)};
      each.activation = Bytes{static_cast<std::int64_t>(random() % 300)};
      each.parameters = Bytes{static_cast<std::int64_t>(random() % 300)};
    }
    const PipeDreamLevel level{static_cast<int>(random() % 5) + 1,
                               {seed % 5 == 0 ? 0 : 1'000'000'000}};
    const bool straight = random() % 3 == 0;
    const auto found = partition_for_pipedream(graph, {level}, straight);
    const std::int64_t expected =
        ChainOracle{graph, level, straight}.best(graph.operators.size(), level.machines);
    if (expected == std::numeric_limits<std::int64_t>::max()) {
      EXPECT_FALSE(found.has_value());
      continue;
    }
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->bottleneck.count(), expected);
    int machines = 0;
    std::vector<int> operators;
    for (const PipeDreamStage& stage : found->stages) {
      machines += stage.machines.front();
      operators.insert(operators.end(), stage.operators.begin(), stage.operators.end());
    }
    EXPECT_EQ(machines, level.machines);
    EXPECT_TRUE(std::is_sorted(operators.begin(), operators.end()));
    EXPECT_EQ(operators.size(), graph.operators.size());
  }
}

// Finds how many stages a partition over one level may have if nothing in it takes longer than
// `bound`; bit n stands for n stages.
std::uint64_t find_stage_counts(const OperatorGraph& graph, const PipeDreamLevel& level,
                                Duration bound) {
  const auto states = find_antichain_states(graph);
  const auto machines = static_cast<std::size_t>(level.machines);
  const double most = static_cast<double>(bound.count()) + 1;  // quotients are rounded down
  const auto transfer = [&](double bytes) {
    return bytes * 1e9 / static_cast<double>(level.bandwidth.count);
  };
  const auto stage_time = [&](std::size_t from, std::size_t to, double g) {
    const bool is_first = from == states.size();
    const Duration before = is_first ? Duration{0} : states[from].compute;
    const Bytes held = is_first ? Bytes{} : states[from].parameters;
    const auto bytes = static_cast<double>((states[to].parameters - held).count);
    const auto time = static_cast<double>((states[to].compute - before).count());
    return (time + transfer(4 * (g - 1) * bytes) / g) / g;
  };
  std::vector<std::vector<std::uint64_t>> counts(states.size(),
                                                 std::vector<std::uint64_t>(machines + 1, 0));
  for (std::size_t j = 0; j < states.size(); ++j) {
    for (std::size_t g = 1; g <= machines; ++g) {
      const auto share = static_cast<double>(g);
      if (stage_time(states.size(), j, share) <= most) counts[j][g] |= 2;
      const auto output = static_cast<double>(states[j].output.count);
      if (j + 1 < states.size() && transfer(2 * output) / share > most) continue;
      for (const int before : states[j].before) {
        const auto k = static_cast<std::size_t>(before);
        const auto input = static_cast<double>(states[k].output.count);
        if (transfer(2 * input) / share > most || stage_time(k, j, share) > most) continue;
        for (std::size_t m = g + 1; m <= machines; ++m) counts[j][m] |= counts[k][m - g] << 1;
      }
    }
  }
  return counts.back()[machines];
}

// A row of the table measured with the published optimizer.
struct PublishedRow {
  std::vector<PipeDreamLevel> levels;
  bool straight;
  std::size_t stages;
  std::string bottleneck;  // seconds
  bool is_tied = false;    // with partitions of other numbers of stages, of which ours is one
};

PipeDreamLevel flat(int machines) { return {machines, {1'000'000'000}}; }
const std::vector<PipeDreamLevel> kTwoLevels = {{4, {4'294'967'296}}, {4, {2'684'354'560}}};

class PublishedPartitions : public testing::Test {
 protected:
  // The published code takes, of equally good partitions, the one that its set of states, which is
  // in no order, lists first. So the published number is one of the possible ones, and where there
  // is only one, it is ours.
  static void expect_stages(const OperatorGraph& graph, const PublishedRow& row,
                            const PipeDreamPartition& found) {
    if (row.straight || row.levels.size() > 1) {
      EXPECT_EQ(found.stages.size(), row.stages);
      return;
    }
    const std::uint64_t possible = find_stage_counts(graph, row.levels.front(), found.bottleneck);
    EXPECT_NE(possible >> row.stages & 1, 0U);
    EXPECT_NE(possible >> found.stages.size() & 1, 0U);
    if (std::popcount(possible) == 1) {
      EXPECT_EQ(found.stages.size(), row.stages);
    }
    EXPECT_EQ(found.stages.size() == row.stages, !row.is_tied);
  }

  static void expect_rows(const std::string& model, const std::string& total, std::size_t states,
                          const std::vector<PublishedRow>& rows) {
    const auto file = find_pipedream_graph(model);
    if (!file) GTEST_SKIP() << "the public profile of " << model << " is not at hand";
    const OperatorGraph graph = read_operators(*file);
    EXPECT_EQ(find_antichain_states(graph).size(), states);
    for (const PublishedRow& row : rows) {
      SCOPED_TRACE(fmt::format("{} on {}{}{}", model, row.levels.front().machines,
                               row.levels.size() > 1 ? " x 4" : "",
                               row.straight ? ", straight" : ""));
      const auto found = partition_for_pipedream(graph, row.levels, row.straight);
      ASSERT_TRUE(found.has_value());
      const auto seconds = [](Duration time) {
        return fmt::format("{:.6f}", static_cast<double>(time.count()) / 1e9);
      };
      EXPECT_EQ(seconds(found->bottleneck), row.bottleneck);
      expect_stages(graph, row, *found);
      EXPECT_EQ(seconds(found->single_machine), total);
    }
  }
};

TEST_F(PublishedPartitions, OfVgg16) {
  expect_rows("vgg16", "0.672535", 40,
              {{kTwoLevels, false, 4, "0.056149"},
               {{flat(4)}, false, 2, "0.205521"},
               {{flat(8)}, false, 2, "0.103833"},
               {{flat(16)}, false, 3, "0.056530"},
               {{flat(4)}, true, 4, "0.411042"},
               {{flat(8)}, true, 8, "0.411042"},
               {{flat(16)}, true, 16, "0.411042"}});
}

TEST_F(PublishedPartitions, OfAlexnet) {
  expect_rows("alexnet", "0.085321", 22,
              {{{flat(4)}, false, 2, "0.034217"},
               {{flat(8)}, false, 3, "0.018874", true},
               {{flat(16)}, false, 3, "0.018874", true},
               {{flat(4)}, true, 4, "0.066454"},
               {{flat(8)}, true, 8, "0.066454"},
               {{flat(16)}, true, 16, "0.095551"}});
}

TEST_F(PublishedPartitions, OfResnet50) {
  expect_rows("resnet50", "0.443419", 240,
              {{{flat(4)}, false, 2, "0.162881"},
               {{flat(8)}, false, 2, "0.092012"},
               {{flat(16)}, false, 3, "0.047801"},
               {{flat(4)}, true, 4, "0.258149"},
               {{flat(8)}, true, 8, "0.258149"},
               {{flat(16)}, true, 16, "0.258149"}});
}

TEST_F(PublishedPartitions, OfGnmt) {
  expect_rows("gnmt", "0.089416", 99,
              {{{flat(4)}, false, 4, "0.025868"},
               {{flat(8)}, false, 8, "0.019285"},
               {{flat(16)}, false, 11, "0.019285", true},
               {{flat(16)}, true, 16, "0.024642"},
               {kTwoLevels, false, 11, "0.013553"}});
}

}  // namespace
}  // namespace frazil
