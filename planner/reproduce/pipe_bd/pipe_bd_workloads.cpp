#include "planner/reproduce/pipe_bd/pipe_bd_workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "planner/partition/pipe_bd.h"
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

  void add_teacher(int block) {
    const auto b = static_cast<std::size_t>(block);
    model_.blocks.push_back(fmt::format("block{}", block));
    Layer teacher = make_layer(fmt::format("T{}", block), block);
    teacher.parameters = bytes_of(b).teacher;
    // A teacher is never trained.
    teacher.untrainable = teacher.parameters;
    for (std::size_t at = 0; at < times_.batches.size(); ++at) {
      teacher.costs[at].forward_frozen = times_.teacher[at][b];
    }
    model_.layers.push_back(teacher);
    const LayerId added{model_.layers.size() - 1};
    if (block > 0) connect(b - 1, added);
    teachers_.push_back(added);
  }
  // Requires: the teacher of this block was added.
  void add_student(int block) {
    const auto b = static_cast<std::size_t>(block);
    Layer student = make_layer(fmt::format("S{}", block), block);
    student.has_loss = true;
    student.parameters = bytes_of(b).student;
    student.optimizer_state = bytes_of(b).state;
    for (std::size_t at = 0; at < times_.batches.size(); ++at) {
      student.costs[at].backward_weight_alone = times_.student[at][b];
      student.costs[at].stash = bytes_of(b).stash * times_.batches[at];
    }
    model_.layers.push_back(student);
    const LayerId added{model_.layers.size() - 1};
    if (block > 0) connect(b - 1, added);
    connect(b, added);
  }

  ModelProfile build() {
    std::sort(model_.edges.begin(), model_.edges.end(), [](const Edge& a, const Edge& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    return std::move(model_);
  }

 private:
  Layer make_layer(const std::string& name, int block) const {
    Layer layer;
    layer.name = name;
    layer.block = BlockId{block};
    for (const int batch : times_.batches) {
      CostSample cost;
      cost.micro_batch_size = batch;
      layer.costs.push_back(cost);
    }
    return layer;
  }
  BlockBytes bytes_of(std::size_t block) const {
    if (!times_.bytes.empty()) return times_.bytes[block];
    return {.teacher = {}, .student = Bytes{1}, .state = {}, .stash = {}, .output = Bytes{1}};
  }
  void connect(std::size_t teacher, LayerId to) {
    model_.edges.push_back(
        {teachers_[teacher], to, EdgeKind::kDetached, {bytes_of(teacher).output}});
  }

  const BlockwiseTimes& times_;
  ModelProfile model_;
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
  BlockwiseTimes times;
  for (auto of = kBlockMeans.rbegin(); of != kBlockMeans.rend(); ++of) {
    times.batches.push_back(of->batch);
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

Loader make_imagenet_loader() {
  // Data parallelism waits for six batches, TR+DPU for block 0, which takes 41.7 ms:
  // 6 x 21.823 / 41.7 = 3.140.
  return {.alone = microseconds(21'823), .rate = 1, .capacity = 1, .ahead = 2};
}

BlockwiseTimes make_cifar_times() {
  BlockwiseTimes times;
  times.batches = {64, 256};
  times.teacher.resize(2);
  times.student.resize(2);
  for (std::size_t rank = 0; rank < kPipeBdEpoch.size(); ++rank) {
    const int blocks = rank < 2 ? 1 : 2;
    for (int b = 0; b < blocks; ++b) {
      times.teacher[1].push_back(of_step(kPipeBdEpoch[rank].teacher) / blocks);
      times.student[1].push_back(of_step(kPipeBdEpoch[rank].student) / blocks);
    }
  }
  // Data parallelism runs a teacher block for its own student and for all later ones.
  Duration teachers{0};
  Duration students{0};
  for (int block = 0; block < kPublishedBlocks; ++block) {
    const auto b = static_cast<std::size_t>(block);
    const int uses = kPublishedBlocks - block;
    teachers += times.teacher[1].at(b) * uses;
    students += times.student[1].at(b);
  }
  for (std::size_t b = 0; b < times.teacher[1].size(); ++b) {
    times.teacher[0].push_back(times.teacher[1][b] * of_step(kDataParallelEpoch.teacher).count() /
                               teachers.count());
    times.student[0].push_back(times.student[1][b] * of_step(kDataParallelEpoch.student).count() /
                               students.count());
  }
  return times;
}

Loader make_cifar_loader() {
  // Four quarters in a sixth of data parallelism's loading are a full batch in that time.
  return {.alone = of_step(kPipeBdEpoch.front().load),
          .rate = kDataParallelEpoch.load,
          .capacity = std::int64_t{kPublishedBlocks} * kPipeBdEpoch.front().load,
          .ahead = 0};
}

HybridPlan make_cifar_pipeline() { return {{1, 1, 1, 1}, {0, 1, 2, 4, 6}, Duration{0}}; }

BlockwiseTimes make_balanced_times() {
  const std::vector<Duration> none(4, Duration{0});
  const std::vector<Duration> each(4, from_tenths_of_ms(200));
  return {{1}, {none}, {each}};
}

ModelProfile make_pipeline_model(const BlockwiseTimes& times) {
  ModelBuilder builder(times);
  for (int block = 0; block < times.blocks(); ++block) {
    builder.add_teacher(block);
    builder.add_student(block);
  }
  return builder.build();
}

ModelProfile make_student_model(const BlockwiseTimes& times, int block) {
  ModelBuilder builder(times);
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
