// PipeDream and PipeDream-2BW have the bits of a sequential program that applies the same versions,
// and every read lags as the rule says, under masks and with short batches too.

#include "exec/state/weight_versions.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <numeric>
#include <set>

#include "exec/state/optimizer.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "tests/exec/support/changing_rate.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr double kVersionsRate = 1e-2;

Plan make_versioned(const ModelProfile& structure, ScheduleKind kind, const std::vector<int>& cuts,
                    int micro_batches, const std::string& mask = "11111") {
  Plan plan = make_small_plan(structure, {.schedule = kind,
                                          .micro_batches = micro_batches,
                                          .cuts = {cuts},
                                          .owned = {micro_batches},
                                          .mask = mask});
  plan.versions =
      kind == ScheduleKind::kPipeDream ? WeightVersions::kStash : WeightVersions::kTwoBuffered;
  return plan;
}

int stage_of(const std::vector<int>& cuts, int layer) {
  return static_cast<int>(
      std::count_if(cuts.begin(), cuts.end(), [&](int cut) { return cut <= layer; }));
}

// Returns the version that stage s of p reads for micro-batch m, from the rules alone. With
// PipeDream p - s micro-batches are ahead of the backward at s; with 2BW groups of p read one group
// behind.
int version_of(ScheduleKind kind, int stages, int stage, int micro_batch) {
  if (kind == ScheduleKind::kPipeDream) return std::max(0, micro_batch - (stages - stage) + 1);
  return std::max(0, micro_batch / stages - 1);
}

// Takes micro-batches one after another on one device, with all versions kept.
class Sequential {
 public:
  Sequential(const ModelSpec& model, const OptimizerConfig& optimizer,
             const std::string& mask = "11111")
      : model_(model), optimizer_(optimizer) {
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      states_.push_back(make_initial_state(model, LayerId{l}, 7));
      is_active_.push_back(mask[model.layers[l].block.index()] == '1');
      set_active(states_.back(), is_active_.back());
    }
    first_active_ = static_cast<std::size_t>(std::find(is_active_.begin(), is_active_.end(), true) -
                                             is_active_.begin());
  }

  void step(Step step, double rate, ScheduleKind kind, const std::vector<int>& cuts,
            const std::vector<Samples>& micro_batches) {
    const int stages = static_cast<int>(cuts.size()) + 1;
    const int interval = kind == ScheduleKind::kPipeDream ? 1 : stages;
    std::vector<std::vector<Tensors>> versions(states_.size());  // by layer and version
    for (std::size_t l = 0; l < states_.size(); ++l) versions[l].push_back(copy(states_[l]));
    std::vector<std::vector<Tensors>> gradients;  // of the group, by micro-batch and layer
    const auto count = static_cast<int>(micro_batches.size());
    for (int m = 0; m < count; ++m) {
      // All samples that share an update count alike.
      const auto group = micro_batches.begin() + m / interval * interval;
      const auto end = group + std::min<std::ptrdiff_t>(interval, micro_batches.end() - group);
      const auto samples =
          std::accumulate(group, end, std::int64_t{0},
                          [](std::int64_t sum, const Samples& some) { return sum + some.count(); });
      const Samples& own = micro_batches[static_cast<std::size_t>(m)];
      const double scale = static_cast<double>(own.count()) / static_cast<double>(samples);
      gradients.push_back(differentiate(step, kind, cuts, m, scale, versions, own));
      if ((m + 1) % interval != 0 && m + 1 != count) continue;
      for (std::size_t l = 0; l < states_.size(); ++l) {
        if (!is_active_[l]) continue;
        update_layer(states_[l], add(gradients, l, m + 1), optimizer_, rate);
        versions[l].push_back(copy(states_[l]));
      }
      gradients.clear();
    }
  }

  std::uint64_t hash() const {
    std::vector<const LayerState*> pointers;
    for (const LayerState& state : states_) pointers.push_back(&state);
    return hash_states(pointers);
  }

 private:
  static Tensors copy(const LayerState& state) {
    Tensors copies;
    for (const at::Tensor& parameter : state.parameters) {
      const bool trains = parameter.requires_grad();
      copies.push_back(parameter.detach().clone().set_requires_grad(trains));
    }
    return copies;
  }

  // Differentiates layer by layer, as the executor cuts its graphs.
  std::vector<Tensors> differentiate(Step step, ScheduleKind kind, const std::vector<int>& cuts,
                                     int m, double scale,
                                     const std::vector<std::vector<Tensors>>& versions,
                                     const Samples& samples) const {
    const int stages = static_cast<int>(cuts.size()) + 1;
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor> outputs;
    std::vector<const Tensors*> read;
    at::Tensor x = samples.inputs[0];
    for (std::size_t l = 0; l < states_.size(); ++l) {
      const int stage = stage_of(cuts, static_cast<int>(l));
      const int version = is_active_[l] ? version_of(kind, stages, stage, m) : 0;
      read.push_back(&versions[l].at(static_cast<std::size_t>(version)));
      inputs.push_back(x.detach().set_requires_grad(l > first_active_));
      const RandomKey key{7, step, MicroBatchId{m}};
      const Tensors layer_inputs{inputs[l]};
      outputs.push_back(
          model_.layers[l].forward({LayerId{l}, *read[l], layer_inputs, key, is_active_[l]}).at(0));
      x = outputs[l];
    }
    outputs.back() = model_.layers.back().loss({x}, samples.labels) * scale;
    std::vector<Tensors> gradients(states_.size());
    at::Tensor gradient;
    for (std::size_t l = states_.size(); l-- > first_active_;) {
      Tensors leaves = is_active_[l] ? *read[l] : Tensors();
      if (l > first_active_) leaves.push_back(inputs[l]);
      gradients[l] = torch::autograd::grad({outputs[l]}, leaves, {gradient});
      if (l > first_active_) {
        gradient = gradients[l].back();
        gradients[l].pop_back();
      }
      for (at::Tensor& each : gradients[l]) each = each.contiguous();
    }
    return gradients;
  }

  // Adds the gradients of micro-batches `end - size` to `end` as the step's tree adds those that
  // are there: pairs (2k, 2k+1) first, pairs of pairs next; what is left from right to left.
  static Tensors add(const std::vector<std::vector<Tensors>>& gradients, std::size_t layer,
                     int end) {
    struct Part {
      int first, size;
      Tensors sum;
    };
    std::vector<Part> parts;
    const int first = end - static_cast<int>(gradients.size());
    for (int m = first; m < end; ++m) {
      Part part{m, 1, gradients[static_cast<std::size_t>(m - first)][layer]};
      while (!parts.empty() && parts.back().size == part.size &&
             parts.back().first % (2 * part.size) == 0) {
        for (std::size_t i = 0; i < part.sum.size(); ++i) {
          part.sum[i] = parts.back().sum[i] + part.sum[i];
        }
        part.first = parts.back().first;
        part.size *= 2;
        parts.pop_back();
      }
      parts.push_back(part);
    }
    Tensors sum = parts.back().sum;
    for (std::size_t p = parts.size() - 1; p-- > 0;) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = parts[p].sum[i] + sum[i];
    }
    return sum;
  }

  const ModelSpec& model_;
  OptimizerConfig optimizer_;
  std::vector<LayerState> states_;
  std::vector<bool> is_active_;  // by layer
  std::size_t first_active_ = 0;
};

TEST(WeightVersions, EqualASequentialProgramThatAppliesTheSameVersions) {
  for (const ScheduleKind kind : {ScheduleKind::kPipeDream, ScheduleKind::kPipeDream2Bw}) {
    for (const std::vector<int>& cuts : std::vector<std::vector<int>>{{}, {4}, {2, 5}, {2, 4, 6}}) {
      for (const int micro_batches : {4, 8}) {
        for (const bool adam : {true, false}) {
          SCOPED_TRACE(std::string(schedule_name(kind)) + ", " + std::to_string(cuts.size() + 1) +
                       " stages, " + std::to_string(micro_batches) + " micro-batches");
          VitConfig config = small_config();
          config.dropout = 0.1;
          OptimizerConfig optimizer;
          if (!adam) optimizer.kind = OptimizerConfig::Kind::kSgd;
          if (!adam) optimizer.momentum = 0.9;
          const ModelSpec model = make_vit(config);
          frazil::Run run(model, optimizer, 7, static_cast<int>(cuts.size()) + 1);
          run.transition_to(make_versioned(run.structure(), kind, cuts, micro_batches));
          Sequential sequential(model, optimizer);
          for (Step step = 0; step < 2; ++step) {
            const std::vector<Samples> data = small_micro_batches(step, micro_batches);
            run.step(step, kVersionsRate, data);
            sequential.step(step, kVersionsRate, kind, cuts, data);
          }
          EXPECT_EQ(run.weight_hash(), sequential.hash());
        }
      }
    }
  }
}

// Expects the reads of all stages that train, once per micro-batch.
void expect_reads(const std::vector<WeightRead>& reads, ScheduleKind kind,
                  const std::vector<int>& cuts, int micro_batches, const std::string& mask) {
  const int stages = static_cast<int>(cuts.size()) + 1;
  const ModelSpec model = make_vit(small_config());
  std::set<int> training;
  for (int l = 0; l < kSmallLayers; ++l) {
    const BlockId block = model.layers[static_cast<std::size_t>(l)].block;
    if (mask[block.index()] == '1') training.insert(stage_of(cuts, l));
  }
  std::set<std::pair<int, int>> seen;
  for (const WeightRead& read : reads) {
    const int s = read.stage.value;
    const int m = read.micro_batch.value;
    EXPECT_TRUE(seen.emplace(s, m).second) << "read once";
    EXPECT_TRUE(training.contains(s));
    EXPECT_EQ(read.version, version_of(kind, stages, s, m));
    const int steady = kind == ScheduleKind::kPipeDream ? stages - 1 - s : 1;
    const int updates_before = kind == ScheduleKind::kPipeDream ? m : m / stages;
    EXPECT_EQ(read.lag, std::min(steady, updates_before));
  }
  EXPECT_EQ(seen.size(), training.size() * static_cast<std::size_t>(micro_batches));
}

TEST(WeightVersions, EveryReadLagsAsItsRuleSays) {
  for (const ScheduleKind kind : {ScheduleKind::kPipeDream, ScheduleKind::kPipeDream2Bw}) {
    frazil::Run run(make_vit(small_config()), {}, 7, 3);
    run.transition_to(make_versioned(run.structure(), kind, {2, 5}, 9));
    const StepResult result = run.step(0, kVersionsRate, small_micro_batches(0, 9));
    EXPECT_EQ(result.weight_reads.size(), 27U);
    expect_reads(result.weight_reads, kind, {2, 5}, 9, "11111");
  }
}

// Takes steps of `sizes` micro-batches, the last one of every second step short of a sample.
void expect_sequential_bits(ScheduleKind kind, const std::vector<int>& cuts,
                            const std::string& mask, const std::vector<int>& sizes, bool adam) {
  SCOPED_TRACE(std::string(schedule_name(kind)) + ", " + std::to_string(cuts.size() + 1) +
               " stages, mask " + mask);
  VitConfig config = small_config();
  config.dropout = 0.1;
  OptimizerConfig optimizer;
  if (!adam) optimizer.kind = OptimizerConfig::Kind::kSgd;
  const ModelSpec model = make_vit(config);
  frazil::Run run(model, optimizer, 7, static_cast<int>(cuts.size()) + 1);
  run.transition_to(make_versioned(run.structure(), kind, cuts, sizes.front(), mask));
  Sequential sequential(model, optimizer, mask);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i) + " of " + std::to_string(sizes[i]));
    const auto step = static_cast<Step>(i);
    const std::vector<Samples> data = small_micro_batches(step, sizes[i], static_cast<int>(i % 2));
    const double rate = changing_rate(optimizer, step, static_cast<Step>(sizes.size()));
    const StepResult result = run.step(step, rate, data);
    EXPECT_EQ(result.note, "") << "the schedule takes any number of micro-batches";
    expect_reads(result.weight_reads, kind, cuts, sizes[i], mask);
    sequential.step(step, rate, kind, cuts, data);
    ASSERT_EQ(run.weight_hash(), sequential.hash());
  }
}

// The masks are prefixes, some as long as a stage and more, and masks with a frozen block behind an
// active one. A whole batch is followed by one that lacks micro-batches and ends in a short one.
TEST(WeightVersions, UnderMasksAndOfShortBatchesEqualASequentialProgramAndLagAsTheirRuleSays) {
  bool adam = false;
  for (const ScheduleKind kind : {ScheduleKind::kPipeDream, ScheduleKind::kPipeDream2Bw}) {
    for (const std::vector<int>& cuts : std::vector<std::vector<int>>{{4}, {2, 5}, {2, 4, 6}}) {
      for (const std::string mask :
           {"11111", "01111", "00111", "00011", "00001", "10101", "01011"}) {
        adam = !adam;
        expect_sequential_bits(kind, cuts, mask, {6, 5}, adam);
      }
    }
  }
}

// Some steps have fewer micro-batches than the pipeline has stages, one has a single short one.
TEST(WeightVersions, OfAnyNumberOfMicroBatchesEqualASequentialProgram) {
  for (const ScheduleKind kind : {ScheduleKind::kPipeDream, ScheduleKind::kPipeDream2Bw}) {
    expect_sequential_bits(kind, {2, 4, 6}, "11111", {8, 8, 2, 1, 3, 7}, true);
    expect_sequential_bits(kind, {2, 5}, "00111", {7, 7, 2, 1, 4, 6}, false);
  }
}

TEST(WeightVersions, AVersionThatIsNotThereYetIsRefusedBeforeTraining) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2);
  Plan plan = make_versioned(run.structure(), ScheduleKind::kPipeDream2Bw, {4}, 8);
  std::get<NamedSchedule>(plan.schedule).in_flight = 6;
  try {
    run.transition_to(plan);
    FAIL() << "not refused";
  } catch (const InfeasibleError& error) {
    EXPECT_EQ(std::string(error.what()),
              "0F4 needs version 1 of the weights, and then the stage holds 0");
  }
}

}  // namespace
}  // namespace frazil
