#include "planner/reproduce/pipe_bd_workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "planner/named/pipe_bd.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

Duration from_tenths_of_ms(int tenths) { return microseconds(100) * tenths; }
// Hundredths of a second in an epoch of 100 steps are tenths of a ms in a step.
Duration of_step(int hundredths) { return from_tenths_of_ms(hundredths); }

constexpr int sum_of(int EpochShares::*part) {
  int sum = 0;
  for (const EpochShares& rank : kPipeBdEpoch) sum += rank.*part;
  return sum;
}
constexpr int kTeacherShare = sum_of(&EpochShares::teacher);
constexpr int kWholeShare = kTeacherShare + sum_of(&EpochShares::student);

class ModelBuilder {
 public:
  explicit ModelBuilder(const BlockwiseTimes& times) : times_(times) {
    model_.model = "blockwise";
    model_.input_bytes_per_sample = Bytes{1};
  }

  void add_load() {
    model_.blocks.push_back("block0");
    load_ = add(
        "load", 0, [&](std::size_t at) { return times_.load[at]; }, /*is_student=*/false);
  }
  void add_teacher(int block) {
    const auto b = static_cast<std::size_t>(block);
    if (block > 0) model_.blocks.push_back(fmt::format("block{}", block));
    const LayerId before = last_output();
    teachers_.push_back(add(
        fmt::format("T{}", block), block, [&](std::size_t at) { return times_.teacher[at][b]; },
        /*is_student=*/false));
    connect(before, teachers_.back());
  }
  // Requires: the teacher of this block was added.
  void add_student(int block) {
    const auto b = static_cast<std::size_t>(block);
    const LayerId student = add(
        fmt::format("S{}", block), block, [&](std::size_t at) { return times_.student[at][b]; },
        /*is_student=*/true);
    connect(block > 0 ? teachers_[b - 1] : load_, student);
    connect(teachers_[b], student);
  }

  ModelProfile build() {
    std::sort(model_.edges.begin(), model_.edges.end(), [](const Edge& a, const Edge& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    return std::move(model_);
  }

 private:
  template <class TimeOf>
  LayerId add(const std::string& name, int block, TimeOf time_of, bool is_student) {
    Layer layer;
    layer.name = name;
    layer.block = BlockId{block};
    layer.has_loss = is_student;
    // A layer without parameters is never trained.
    layer.parameters = Bytes{is_student ? 1 : 0};
    for (std::size_t at = 0; at < times_.batches.size(); ++at) {
      CostSample cost;
      cost.micro_batch_size = times_.batches[at];
      (is_student ? cost.backward_weight_alone : cost.forward_frozen) = time_of(at);
      layer.costs.push_back(cost);
    }
    model_.layers.push_back(layer);
    return LayerId{model_.layers.size() - 1};
  }
  LayerId last_output() const { return teachers_.empty() ? load_ : teachers_.back(); }
  void connect(LayerId from, LayerId to) {
    model_.edges.push_back({from, to, EdgeKind::kDetached, {Bytes{1}}});
  }

  const BlockwiseTimes& times_;
  ModelProfile model_;
  LayerId load_;
  std::vector<LayerId> teachers_;
};

Workload make_workload(ModelProfile model, const HybridPlan& hybrid, int batch) {
  const int devices = std::accumulate(hybrid.groups.begin(), hybrid.groups.end(), 0);
  Workload workload{.model = std::move(model),
                    .cluster = make_uniform_cluster(devices, Bytes{kLargestQuantity}, {}),
                    .plan = {}};
  const auto blocks = static_cast<int>(workload.model.blocks.size());
  workload.plan = make_hybrid_plan(hybrid, workload.model, FreezeMask::all_active(blocks), batch);
  return workload;
}

}  // namespace

BlockwiseTimes make_imagenet_times() {
  const std::vector<Duration> means = [] {
    std::vector<Duration> sums;
    sums.reserve(kBlockMeans.size());
    for (const BlockMeans& of : kBlockMeans) {
      sums.push_back(from_tenths_of_ms(std::accumulate(of.tenths.begin(), of.tenths.end(), 0)));
    }
    return sums;
  }();
  // Loading has the same share of compute in a step at the full batch as in the published epoch.
  const Duration at_full = means.front() * kPipeBdEpoch.front().load / kWholeShare;
  const Duration at_quarter =
      means.front() * kDataParallelEpoch.load / (kPublishedBlocks * kWholeShare);
  const int full = kBlockMeans.front().batch;
  const int quarter = kBlockMeans.back().batch;
  BlockwiseTimes times;
  for (auto of = kBlockMeans.rbegin(); of != kBlockMeans.rend(); ++of) {
    times.batches.push_back(of->batch);
    times.load.push_back(at_quarter +
                         (at_full - at_quarter) * (of->batch - quarter) / (full - quarter));
    auto& teacher = times.teacher.emplace_back();
    auto& student = times.student.emplace_back();
    for (const int tenths : of->tenths) {
      const Duration both = from_tenths_of_ms(tenths);
      teacher.push_back(both * kTeacherShare / kWholeShare);
      student.push_back(both - teacher.back());
    }
  }
  return times;
}

BlockwiseTimes make_cifar_times() {
  BlockwiseTimes times;
  times.batches = {256};
  times.load = {of_step(kPipeBdEpoch.front().load)};
  times.teacher.emplace_back();
  times.student.emplace_back();
  for (const EpochShares& rank : kPipeBdEpoch) {
    times.teacher.front().push_back(of_step(rank.teacher));
    times.student.front().push_back(of_step(rank.student));
  }
  return times;
}

BlockwiseTimes make_cifar_data_parallel_times() {
  return {{64},
          {of_step(kDataParallelEpoch.load)},
          {{of_step(kDataParallelEpoch.teacher)}},
          {{of_step(kDataParallelEpoch.student)}}};
}

BlockwiseTimes make_balanced_times() {
  const std::vector<Duration> none(4, Duration{0});
  const std::vector<Duration> each(4, from_tenths_of_ms(200));
  return {{1}, {Duration{0}}, {none}, {each}};
}

ModelProfile make_pipeline_model(const BlockwiseTimes& times) {
  ModelBuilder builder(times);
  builder.add_load();
  for (int block = 0; block < times.blocks(); ++block) {
    builder.add_teacher(block);
    builder.add_student(block);
  }
  return builder.build();
}

ModelProfile make_student_model(const BlockwiseTimes& times, int block) {
  ModelBuilder builder(times);
  builder.add_load();
  for (int b = 0; b <= block; ++b) builder.add_teacher(b);
  builder.add_student(block);
  return builder.build();
}

Workload make_relayed(const BlockwiseTimes& times, const HybridPlan& hybrid) {
  return make_workload(make_pipeline_model(times), hybrid, times.batches.back());
}

Workload make_single_student(const BlockwiseTimes& times, int block, int devices) {
  ModelProfile model = make_student_model(times, block);
  const auto units = static_cast<int>(find_units(model).size()) - 1;
  return make_workload(std::move(model), {{devices}, {0, units}, Duration{0}},
                       times.batches.back());
}

HybridCosts make_published_costs() {
  HybridCosts costs;
  costs.devices = static_cast<int>(kBlockMeans.size());
  costs.blocks = kPublishedBlocks;
  const std::vector<Duration> none(kPublishedBlocks, Duration{0});
  for (const BlockMeans& means : kBlockMeans) {
    std::vector<Duration>& step = costs.step.emplace_back();
    for (const int tenths : means.tenths) step.push_back(from_tenths_of_ms(tenths));
    costs.reduce.push_back(none);
  }
  costs.relay.assign(kPublishedBlocks - 1, Duration{0});
  return costs;
}

}  // namespace frazil
