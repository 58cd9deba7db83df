#include "tests/planner/support/search_cases.h"

#include <algorithm>
#include <random>
#include <tuple>

#include "planner/bounds/shape.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed) {}

  SearchQuestion draw() {
    SearchQuestion question;
    question.profile = draw_profile();
    question.options = draw_options(question.profile);
    question.cluster = draw_cluster();
    return question;
  }

 private:
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool once_in(int times) { return number(1, times) == 1; }

  void draw_cost(CostSample& cost) {
    cost.forward = nanoseconds(number(0, 20'000)) * cost.micro_batch_size;
    cost.forward_frozen = cost.forward * number(60, 100) / 100;
    cost.backward_input = nanoseconds(number(0, 20'000)) * cost.micro_batch_size;
    cost.backward_weight = nanoseconds(number(0, 20'000)) * cost.micro_batch_size;
    cost.backward_weight_alone = cost.backward_weight * number(100, 130) / 100;
    cost.stash = Bytes{number(0, 400)} * cost.micro_batch_size;
  }

  ModelProfile draw_profile() {
    const auto layers = static_cast<int>(number(1, 6));
    ModelProfile profile = make_chain(layers, {}, {}, {});
    for (Layer& layer : profile.layers) {
      for (CostSample& cost : layer.costs) draw_cost(cost);
      layer.parameters = Bytes{once_in(6) ? 0 : number(1, 2000)};
      layer.optimizer_state = layer.parameters * 2;
      layer.update = nanoseconds(number(0, 5'000));
    }
    for (Edge& edge : profile.edges) edge.tensor_bytes_per_sample = {Bytes{number(0, 40)}};
    if (layers > 3 && once_in(3)) {  // a skip in the place of an edge between neighbours, or beside
      const LayerId from{static_cast<int>(number(0, layers - 3))};
      if (once_in(2)) profile.edges[from.index()].to = LayerId{from.value + 2};
      profile.edges.push_back({from, LayerId{layers - 1}, EdgeKind::kGradient, {Bytes{7}}});
    }
    if (layers > 2 && once_in(4)) {
      profile.edges[static_cast<std::size_t>(number(0, layers - 2))].kind = EdgeKind::kDetached;
    }
    std::sort(profile.edges.begin(), profile.edges.end(), [](const Edge& a, const Edge& b) {
      return std::tie(a.from, a.to, a.kind) < std::tie(b.from, b.to, b.kind);
    });
    const auto same = [](const Edge& a, const Edge& b) { return a.from == b.from && a.to == b.to; };
    profile.edges.erase(std::unique(profile.edges.begin(), profile.edges.end(), same),
                        profile.edges.end());
    Layer& first = profile.layers.front();
    Layer& last = profile.layers.back();
    if (layers > 1 && once_in(4) && first.parameters.count > 0 && last.parameters.count > 0) {
      const Bytes both = std::min(first.parameters, last.parameters);
      profile.tied.push_back({"tied", both, {LayerId{0}, LayerId{layers - 1}}});
    }
    return profile;
  }

  SearchOptions draw_options(const ModelProfile& profile) {
    SearchOptions options;
    options.batch_size = static_cast<int>(number(1, 9));
    options.micro_batch_sizes = {1};
    if (options.batch_size > 2 && once_in(2)) options.micro_batch_sizes.push_back(2);
    if (options.batch_size > 4 && once_in(3)) options.micro_batch_sizes = {3};
    std::vector<ScheduleKind> all = synchronous_schedules();
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(static_cast<std::size_t>(number(1, 3)));
    options.schedules = all;
    options.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
    for (std::size_t block = 0; block + 1 < profile.blocks.size(); ++block) {
      if (once_in(4)) options.mask.set_active(BlockId{block}, false);
    }
    options.reduction = once_in(2) ? ReductionMode::kExact : ReductionMode::kFast;
    if (once_in(6)) options.overlap = ReductionOverlap{Bytes{1500}};
    options.clip = once_in(3);
    options.joint = !once_in(5);
    options.recompute = once_in(2);
    return options;
  }

  Cluster draw_cluster() {
    const auto devices = static_cast<int>(number(1, 5));
    const Bytes memory{once_in(3) ? number(2'000, 20'000) : 10'000'000};
    Cluster cluster = make_uniform_cluster(
        devices, memory, {nanoseconds(number(0, 5'000)), BytesPerSecond{number(0, 20'000'000)}});
    if (once_in(3)) {
      for (Device& device : cluster.devices) {
        device.action_overhead = nanoseconds(700);
        device.step_overhead = nanoseconds(number(0, 2'000));
      }
    }
    if (devices > 1 && once_in(2)) add_second_kind(cluster);
    if (devices > 1 && once_in(3)) {
      const Link fast{nanoseconds(100), BytesPerSecond{200'000'000}};
      cluster.links = {{DeviceId{0}, DeviceId{1}, fast}, {DeviceId{1}, DeviceId{0}, fast}};
    }
    return cluster;
  }

  void add_second_kind(Cluster& cluster) {
    cluster.hosts.push_back({"other", Bytes{1'000'000'000}});
    const std::int64_t ppm = number(1'000'000, 3'000'000);
    for (Device& device : cluster.devices) {
      if (once_in(2)) continue;
      device.host = HostId{1};
      device.time_ppm = ppm;
      device.memory_limit = device.memory_limit * 2;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

SearchQuestion draw_search_question(std::uint64_t seed) { return Drawing(seed).draw(); }

SearchQuestion draw_cached_question(std::uint64_t seed) {
  SearchQuestion question = draw_search_question(seed);
  question.options.cache = true;
  const auto frozen = static_cast<int>(seed % question.profile.blocks.size());
  for (int block = 0; block < frozen; ++block) {
    question.options.mask.set_active(BlockId{block}, false);
  }
  return question;
}

SearchQuestion draw_tight_question(std::uint64_t seed) {
  SearchQuestion question = draw_search_question(seed);
  if (seed % 2 == 0) question.options.schedules = {ScheduleKind::kHanayo, ScheduleKind::kLoopedBfs};
  const Bytes memory{5'000 + static_cast<std::int64_t>(seed * 7919 % 20'000)};
  for (Device& device : question.cluster.devices) device.memory_limit = memory;
  for (Edge& edge : question.profile.edges) {
    for (Bytes& size : edge.tensor_bytes_per_sample) size = size * 4;
  }
  return question;
}

SearchQuestion draw_question_over_processes(std::uint64_t seed) {
  SearchQuestion question = draw_search_question(seed);
  std::mt19937_64 random(seed);
  const auto number = [&](std::uint64_t below) {
    return static_cast<std::int64_t>(random() % below);
  };
  Cluster& cluster = question.cluster;
  if (seed % 4 == 0) {
    const Cluster like = cluster;
    cluster = make_uniform_cluster(static_cast<int>(like.devices.size()),
                                   like.devices.front().memory_limit, like.default_link);
  }
  for (Device& device : cluster.devices) {
    device.process = ProcessId(2 * device.host.value + static_cast<std::int32_t>(number(2)));
  }
  if (number(3) > 0) cluster.commit_round = nanoseconds(number(60'000));
  if (number(2) == 0) return question;
  if (number(2) == 0) cluster.links.clear();
  for (const LinkClass each : kLinkClasses) {
    if (number(4) == 0) continue;
    const Link link{nanoseconds(number(5'000)), BytesPerSecond{number(3) * 10'000'000}};
    cluster.link_classes[each] = link;
  }
  return question;
}

std::vector<Shape> list_shapes(Evaluator& evaluator) {
  std::vector<Shape> shapes;
  for (const ShapeCell& cell : list_cells(evaluator.space())) {
    std::vector<ShapeCell> cells = list_longer(cell, evaluator.space());
    cells.push_back(cell);
    for (const ShapeCell& each : cells) {
      for (const ShapeVariant& variant : list_variants(each, evaluator.space())) {
        if (evaluator.device_classes().repeats(each, variant.arrangement)) continue;
        shapes.push_back({each, variant});
      }
    }
  }
  return shapes;
}

}  // namespace frazil
