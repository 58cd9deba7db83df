// Compares PipeDream's formula with trying all pipelines, and with what its own optimizer printed.

#include "planner/partition/replicated_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "profiles/import/pipedream_graph.h"
#include "profiles/text_file.h"
#include "tests/support/pipedream_graph.h"
#include "tests/support/public_data.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

std::int64_t divide_up(Wide value, Wide by) {
  return static_cast<std::int64_t>((value + by - 1) / by);
}

// Evaluates the formula of the header on sets of layers and tries every chain of sets.
class AllPipelines {
 public:
  AllPipelines(const ModelProfile& profile, const ReplicaOptions& options)
      : profile_(profile), options_(options), layers_(profile.layers.size()) {}

  std::int64_t best() const {
    return best_between(options_.levels.size() - 1, 0, (1U << layers_) - 1);
  }

 private:
  std::int64_t best_between(std::size_t level, unsigned start, unsigned last) const {
    return best_after(level, start, start, last, options_.levels[level].machines);
  }

  std::int64_t best_after(std::size_t level, unsigned start, unsigned done, unsigned last,
                          int machines) const {
    if (done == last) return 0;
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (unsigned next = done + 1; next <= last; ++next) {
      if ((next & done) != done || (next & ~last) != 0 || !is_ideal(next)) continue;
      const int most = options_.is_straight ? std::min(machines, 1) : machines;
      for (int copies = 1; copies <= most; ++copies) {
        std::int64_t time = stage_time(level, done, next, copies, done == start);
        if (done != start) {
          time = std::max(time, transfer(level, done, copies));
          if (next + 1 != 1U << layers_) time = std::max(time, transfer(level, next, copies));
        }
        if (time >= best) continue;
        best =
            std::min(best, std::max(time, best_after(level, start, next, last, machines - copies)));
      }
    }
    return best;
  }

  bool is_ideal(unsigned set) const {
    return std::all_of(profile_.edges.begin(), profile_.edges.end(), [&](const Edge& edge) {
      return (set >> edge.to.value & 1U) == 0 || (set >> edge.from.value & 1U) != 0;
    });
  }

  std::int64_t stage_time(std::size_t level, unsigned from, unsigned to, int copies,
                          bool is_first) const {
    Wide compute = 0;
    Wide parameters = 0;
    for (std::size_t l = 0; l < layers_; ++l) {
      if (((to & ~from) >> l & 1U) == 0) continue;
      const CostSample& cost = profile_.layers[l].costs.front();
      compute += (cost.forward + cost.backward_input + cost.backward_weight).count();
      parameters += profile_.layers[l].parameters.count;
    }
    if (level > 0) compute = best_between(level - 1, from, to);
    Wide rate = static_cast<Wide>(options_.levels[level].bandwidth.count) * copies;
    if (is_first && level > 0) rate *= options_.levels[level - 1].machines;
    const Wide weights = 4 * (copies - 1) * parameters * 1'000'000'000;
    return divide_up(compute * rate + weights, rate * copies);
  }

  std::int64_t transfer(std::size_t level, unsigned boundary, int copies) const {
    boundary &= ~find_aside();
    std::set<LayerId> counted;
    for (std::size_t last = 0; last < layers_; ++last) {
      if ((boundary >> last & 1U) == 0 || (readers_of(last) & boundary) != 0) continue;
      counted.insert(LayerId{last});
      const unsigned before = before_of(last);
      for (std::size_t l = 0; l < layers_; ++l) {
        if ((before >> l & 1U) != 0 && (readers_of(l) & ~before & ~(1U << last)) != 0) {
          counted.insert(LayerId{l});
        }
      }
    }
    Wide bytes = 0;
    for (const LayerId layer : counted) bytes += activation(layer);
    return divide_up(2 * bytes * 1'000'000'000,
                     static_cast<Wide>(options_.levels[level].bandwidth.count) * copies);
  }

  bool is_free(std::size_t layer) const {
    const CostSample& cost = profile_.layers[layer].costs.front();
    return (cost.forward + cost.backward_input + cost.backward_weight).count() == 0 &&
           profile_.layers[layer].parameters.count == 0;
  }

  // Finds the layers that nobody reads, and those that these alone have read.
  unsigned find_aside() const {
    unsigned aside = 0;
    for (std::size_t round = 0; round < layers_; ++round) {
      for (std::size_t l = 0; l < layers_; ++l) {
        const bool is_read =
            std::any_of(profile_.edges.begin(), profile_.edges.end(), [&](const Edge& edge) {
              return edge.from.index() == l && (aside >> edge.to.value & 1U) == 0;
            });
        if (is_free(l) && !is_read && !profile_.layers[l].has_loss) aside |= 1U << l;
      }
    }
    return aside;
  }

  unsigned readers_of(std::size_t layer) const {
    unsigned readers = 0;
    for (const Edge& edge : profile_.edges) {
      if (edge.from.index() == layer) readers |= 1U << edge.to.value;
    }
    return readers & ~find_aside();
  }

  unsigned before_of(std::size_t layer) const {
    unsigned before = 0;
    for (const Edge& edge : profile_.edges) {
      if (edge.to.index() == layer) before |= 1U << edge.from.value | before_of(edge.from.index());
    }
    return before;
  }

  std::int64_t activation(LayerId layer) const {
    if (is_free(layer.index()) && before_of(layer.index()) == 0) return 0;
    std::int64_t largest = 0;
    for (const Edge& edge : profile_.edges) {
      if (edge.from == layer) largest = std::max(largest, edge.bytes(1).count);
    }
    return largest;
  }

  const ModelProfile& profile_;
  const ReplicaOptions& options_;
  std::size_t layers_;
};

ModelProfile make_random_model(std::mt19937_64& random, int most_layers) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  ModelProfile profile;
  profile.model = "random";
  const int layers = draw(1, most_layers);
  const bool is_chain = draw(0, 2) == 0;
  std::vector<Bytes> activation;
  for (int l = 0; l < layers; ++l) {
    Layer layer;
    layer.name = std::to_string(l);
    layer.block = BlockId(l);
    layer.has_loss = l + 1 == layers;
    CostSample cost;
    if (draw(0, 3) != 0) {
      cost.forward = Duration{draw(0, 1'000)};
      cost.backward_input = Duration{draw(0, 1'000)};
      cost.backward_weight = Duration{draw(0, 1'000)};
    }
    if (draw(0, 2) != 0) layer.parameters = Bytes{draw(0, 3'000)};
    layer.costs = {cost};
    profile.layers.push_back(layer);
    profile.blocks.push_back(layer.name);
    activation.push_back(Bytes{draw(0, 1) * draw(0, 1'000)});
  }
  for (int from = 0; from < layers; ++from) {
    for (int to = from + 1; to < layers; ++to) {
      if (is_chain ? to != from + 1 : draw(0, to == from + 1 ? 1 : 3) != 0) continue;
      profile.edges.push_back({LayerId(from),
                               LayerId(to),
                               EdgeKind::kGradient,
                               {activation[static_cast<std::size_t>(from)]}});
    }
  }
  return profile;
}

void expect_all_layers_once(const ModelProfile& profile, const ReplicatedPartition& partition) {
  std::set<LayerId> layers;
  for (const ReplicatedStage& stage : partition.stages) {
    for (const LayerId layer : stage.layers) EXPECT_TRUE(layers.insert(layer).second);
  }
  EXPECT_EQ(layers.size(), profile.layers.size());
}

TEST(ReplicatedPartition, EqualsTryingAllPipelinesOnRandomModels) {
  for (int seed = 0; seed < draws(1200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const bool has_levels = seed % 3 == 0;
    const ModelProfile profile = make_random_model(random, has_levels ? 5 : 7);
    const auto draw = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    ReplicaOptions options;
    options.levels = {{draw(1, has_levels ? 3 : 6), BytesPerSecond{draw(1, 4) * 500'000'000LL}}};
    if (has_levels) {
      options.levels.push_back({draw(1, 3), BytesPerSecond{draw(1, 4) * 300'000'000LL}});
    }
    options.is_straight = draw(0, 3) == 0;
    const ReplicatedPartition partition = partition_replicated(profile, options);
    ASSERT_EQ(partition.time.count(), AllPipelines(profile, options).best());
    ASSERT_EQ(partition.lower_bound, partition.time);
    expect_all_layers_once(profile, partition);
  }
}

TEST(ReplicatedPartition, BracketsTheOptimumWhereItMayListLittle) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const ModelProfile profile = make_random_model(random, 7);
    ReplicaOptions options;
    options.levels = {{4, BytesPerSecond{1'000'000'000}}};
    const Duration optimum = partition_replicated(profile, options).time;
    options.ideals = 2;
    const ReplicatedPartition partition = partition_replicated(profile, options);
    ASSERT_GE(partition.time, optimum);
    ASSERT_LE(partition.lower_bound, optimum);
    expect_all_layers_once(profile, partition);
  }
}

struct PublishedRow {
  std::string model;
  std::vector<int> machines;
  bool is_straight;
  double seconds;  // "Time per stage in pipeline", rounded to six decimals
};

ReplicaOptions options_of(const PublishedRow& row) {
  ReplicaOptions options;
  options.is_straight = row.is_straight;
  if (row.machines.size() == 1) {
    options.levels = {{row.machines[0], BytesPerSecond{1'000'000'000}}};
  } else {
    options.levels = {{row.machines[0], BytesPerSecond{4'294'967'296}},
                      {row.machines[1], BytesPerSecond{2'684'354'560}}};
  }
  return options;
}

const std::vector<PublishedRow> kPublished = {
    {"vgg16", {4, 4}, false, 0.056149}, {"vgg16", {4}, false, 0.205521},
    {"vgg16", {8}, false, 0.103833},    {"vgg16", {16}, false, 0.056530},
    {"vgg16", {4}, true, 0.411042},     {"vgg16", {8}, true, 0.411042},
    {"vgg16", {16}, true, 0.411042},    {"alexnet", {4}, false, 0.034217},
    {"alexnet", {8}, false, 0.018874},  {"alexnet", {16}, false, 0.018874},
    {"alexnet", {4}, true, 0.066454},   {"alexnet", {8}, true, 0.066454},
    {"alexnet", {16}, true, 0.095551},  {"resnet50", {4}, false, 0.162881},
    {"resnet50", {8}, false, 0.092012}, {"resnet50", {16}, false, 0.047801},
    {"resnet50", {4}, true, 0.258149},  {"resnet50", {8}, true, 0.258149},
    {"resnet50", {16}, true, 0.258149}, {"gnmt", {4}, false, 0.025868},
    {"gnmt", {8}, false, 0.019285},     {"gnmt", {16}, false, 0.019285},
    {"gnmt", {16}, true, 0.024642},     {"gnmt", {4, 4}, false, 0.013553},
};

std::string file_of(const std::string& model) { return "pipedream/" + model + ".graph.txt"; }

ModelProfile read_model(const std::string& model) {
  const std::string name = file_of(model);
  return parse_pipedream_graph(read_text_file(public_data(name)), name, {}).profile;
}

// Computes the optimizer's own figure for given stages from the file it reads: from its nodes but
// the inputs and the items that nobody takes.
class OwnFigure {
 public:
  explicit OwnFigure(const PipeDreamGraph& graph) {
    std::set<std::size_t> read;
    for (const auto& [from, to] : graph.edges) read.insert(static_cast<std::size_t>(from));
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const GraphNode& node = graph.nodes[n];
      if (node.description.starts_with("Input")) continue;
      if (node.description.starts_with("__getitem__") && !read.contains(n)) continue;
      nodes_[node.name] = node;
    }
    for (const auto& [from, to] : graph.edges) {
      const std::string& a = graph.nodes[static_cast<std::size_t>(from)].name;
      const std::string& b = graph.nodes[static_cast<std::size_t>(to)].name;
      if (nodes_.contains(a) && nodes_.contains(b)) readers_[a].insert(b);
    }
  }

  // Returns ns. `done` holds the nodes of earlier stages, and afterwards those of `stages` too.
  double of(const std::vector<ReplicatedStage>& stages, const ModelProfile& profile,
            const std::vector<ReplicaLevel>& levels, std::size_t level,
            std::set<std::string>& done) const {
    double largest = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const auto bandwidth = static_cast<double>(levels[level].bandwidth.count) / 1e9;
      const double copies = stages[s].machines;
      const double before = 2 * crossing(done) / (bandwidth * copies);
      std::set<std::string> within = done;
      double compute = 0;
      double parameters = 0;
      for (const LayerId layer : stages[s].layers) {
        const std::string& name = profile.layers[layer.index()].name;
        const auto found = nodes_.find(name.substr(0, name.find(' ')));
        if (found == nodes_.end()) continue;
        within.insert(found->first);
        compute += static_cast<double>((found->second.forward + found->second.backward).count());
        parameters += static_cast<double>(found->second.parameters.count);
      }
      if (level > 0) compute = of(stages[s].inner, profile, levels, level - 1, done);
      const double sharing = s == 0 && level > 0 ? levels[level - 1].machines : 1;
      const double weights = 4 * (copies - 1) * parameters / (bandwidth * copies * sharing);
      largest = std::max(largest, (compute + weights) / copies);
      done = std::move(within);
      if (s == 0) continue;
      largest = std::max(largest, before);
      if (done.size() < nodes_.size()) {
        largest = std::max(largest, 2 * crossing(done) / (bandwidth * copies));
      }
    }
    return largest;
  }

 private:
  std::set<std::string> readers_of(const std::string& node) const {
    const auto found = readers_.find(node);
    return found == readers_.end() ? std::set<std::string>{} : found->second;
  }

  // Returns the node itself and all nodes before it.
  std::set<std::string> up_to(const std::string& node) const {
    std::set<std::string> found{node};
    for (std::size_t size = 0; size != found.size();) {
      size = found.size();
      for (const auto& [from, readers] : readers_) {
        const bool is_before = std::any_of(readers.begin(), readers.end(),
                                           [&](const auto& r) { return found.contains(r); });
        if (is_before) found.insert(from);
      }
    }
    return found;
  }

  double crossing(const std::set<std::string>& done) const {
    std::set<std::string> counted;
    for (const std::string& node : done) {
      const std::set<std::string> of_node = readers_of(node);
      if (std::any_of(of_node.begin(), of_node.end(),
                      [&](const auto& r) { return done.contains(r); })) {
        continue;
      }
      counted.insert(node);
      const std::set<std::string> before = up_to(node);
      for (const std::string& each : before) {
        const std::set<std::string> of_each = readers_of(each);
        if (std::any_of(of_each.begin(), of_each.end(),
                        [&](const auto& r) { return !before.contains(r); })) {
          counted.insert(each);
        }
      }
    }
    double bytes = 0;
    for (const std::string& node : counted) {
      bytes += static_cast<double>(nodes_.at(node).activation.count);
    }
    return bytes;
  }

  std::map<std::string, GraphNode> nodes_;
  std::map<std::string, std::set<std::string>> readers_;
};

TEST(ReplicatedPartition, IsNeverAboveWhatPipedreamsOptimizerPrinted) {
  for (const PublishedRow& row : kPublished) {
    SKIP_WITHOUT_PUBLIC_DATA(file_of(row.model));
    SCOPED_TRACE(row.model + " on " + std::to_string(row.machines[0]) +
                 (row.is_straight ? " straight" : "") + (row.machines.size() > 1 ? " x 4" : ""));
    const ModelProfile profile = read_model(row.model);
    const ReplicatedPartition partition = partition_replicated(profile, options_of(row));
    EXPECT_LE(static_cast<double>(partition.time.count()), row.seconds * 1e9 + 500);
    EXPECT_EQ(partition.lower_bound, partition.time);
    expect_all_layers_once(profile, partition);
    const OwnFigure own(read_pipedream_graph(public_data(file_of(row.model))));
    std::set<std::string> done;
    const auto levels = options_of(row).levels;
    EXPECT_LE(own.of(partition.stages, profile, levels, levels.size() - 1, done),
              row.seconds * 1e9 + 500);
  }
}

TEST(ReplicatedPartition, IsNeverWorseWithMoreMachines) {
  for (const char* const model : {"vgg16", "alexnet", "resnet50", "gnmt"}) {
    SKIP_WITHOUT_PUBLIC_DATA(file_of(model));
    const ModelProfile profile = read_model(model);
    for (const bool is_straight : {false, true}) {
      Duration before = Duration::max();
      for (int machines = 1; machines <= 64; ++machines) {
        const PublishedRow row{model, {machines}, is_straight, 0};
        const Duration time = partition_replicated(profile, options_of(row)).time;
        ASSERT_LE(time, before) << model << " on " << machines;
        before = time;
      }
    }
    Duration before = Duration::max();
    for (int servers = 1; servers <= 8; ++servers) {
      const PublishedRow row{model, {4, servers}, false, 0};
      const Duration time = partition_replicated(profile, options_of(row)).time;
      ASSERT_LE(time, before) << model << " on " << servers << " servers";
      before = time;
    }
  }
}

TEST(ReplicatedPartition, CopiesALayerThatIsTheWholeTime) {
  std::mt19937_64 random(1);
  ModelProfile profile = make_random_model(random, 1);
  profile.layers[0].costs[0].forward = Duration{1'000};
  profile.layers[0].costs[0].backward_input = profile.layers[0].costs[0].backward_weight = {};
  profile.layers[0].parameters = Bytes{10};
  ReplicaOptions options;
  options.levels = {{4, BytesPerSecond{1'000'000'000}}};
  // The exact time is (1000 + 4 x 3 x 10 / 4) / 4 = 257.5.
  EXPECT_EQ(partition_replicated(profile, options).time, Duration{258});
  profile.layers[0].parameters = Bytes{100'000};
  EXPECT_EQ(partition_replicated(profile, options).time, Duration{1'000});
}

}  // namespace
}  // namespace frazil
