// Every schedule of a flush, on every placement: the bits of one device, the planned order, and
// frozen layers anywhere.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "exec/optimizer.h"
#include "planner/placement.h"
#include "planner/plan_changes.h"
#include "planner/schedule_check.h"
#include "planner/schedule_menu.h"
#include "planner/schedules.h"
#include "profiles/error.h"
#include "tests/exec/small_vit.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

struct Setting {
  OptimizerConfig optimizer;
  VitConfig model = small_config();
};

// AdamW with dropout and clipping; SGD with momentum.
Setting make_setting(int index) {
  Setting setting;
  setting.optimizer.learning_rate = 1e-2;
  setting.optimizer.warm_up_steps = 2;
  if (index % 2 == 0) {
    setting.model.dropout = 0.1;
    setting.optimizer.clip_norm = 0.5;
  } else {
    setting.optimizer.kind = OptimizerConfig::Kind::kSgd;
    setting.optimizer.momentum = 0.9;
  }
  return setting;
}

// Uneven times, for the schedules that decide by them.
ModelProfile with_times(ModelProfile profile) {
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    CostSample cost;
    cost.micro_batch_size = kSmallMicroBatch;
    cost.forward = microseconds(100 + 10 * static_cast<int>(l));
    cost.forward_frozen = cost.forward;
    cost.backward_input = cost.forward + microseconds(7);
    cost.backward_weight = cost.forward - microseconds(30);
    cost.backward_weight_alone = cost.backward_input + cost.backward_weight;
    profile.layers[l].costs = {cost};
  }
  return profile;
}

struct Case {
  ScheduleKind kind;
  int devices = 2;
  int chunks = 1;
  int micro_batches = 6;
  std::string mask = "11111";
};

std::string name_of(const Case& one) {
  return std::string(schedule_name(one.kind)) + " on " + std::to_string(one.devices) +
         " devices, chunks " + std::to_string(one.chunks) + ", " +
         std::to_string(one.micro_batches) + " micro-batches, mask " + one.mask;
}

// Stages as even as eight layers allow. Throws InfeasibleError where the schedule has no such form.
Plan place(const Case& one, const ModelProfile& structure) {
  const ScheduleFamily& family = family_of(one.kind);
  const int stages = one.devices * one.chunks;
  const int ways = directions(family.placement);
  if (one.micro_batches % ways != 0) throw InfeasibleError("micro-batches for both ways");
  Plan plan = make_small_plan(
      structure,
      {.micro_batches = one.micro_batches, .owned = {one.micro_batches}, .mask = one.mask});
  plan.pipelines.clear();
  for (int direction = 0; direction < ways; ++direction) {
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices;
    for (int s = 0; s < stages; ++s) {
      if (s > 0) cuts.emplace_back(s * kSmallLayers / stages);
      devices.emplace_back(device_of_stage(family.placement, one.devices, direction, s));
    }
    const int share = one.micro_batches / ways;
    plan.pipelines.push_back(make_pipeline(
        kSmallLayers, cuts, devices,
        {MicroBatchId{direction * share}, MicroBatchId{(direction + 1) * share - 1}}));
  }
  plan = with_schedule(plan, {.kind = one.kind, .chunks = one.chunks});
  const Cluster cluster = make_uniform_cluster(one.devices, Bytes{1 << 30}, {microseconds(5), {}});
  const ModelProfile profile = with_times(structure);
  const PlanCosts costs{profile, cluster};
  (void)make_schedule(plan, one.devices, &costs);
  return with_lists(plan, profile, cluster);
}

std::uint64_t run_plan(const Setting& setting, const Plan& plan, int devices, int micro_batches) {
  Run run(make_vit(setting.model), setting.optimizer, 7, devices);
  run.switch_to(plan);
  for (const Step step : {0, 3}) {  // of the warm-up, and along the cosine
    run.step(step, learning_rate(setting.optimizer, step, 5),
             small_micro_batches(step, micro_batches));
  }
  return run.weight_hash();
}

ModelProfile structure_of(const Setting& setting) {
  return make_structure(make_vit(setting.model),
                        optimizer_bytes_per_parameter_byte(setting.optimizer));
}

// What one device gives, remembered.
class OneDevice {
 public:
  std::uint64_t hash(int setting, int micro_batches, const std::string& mask) {
    const auto [known, added] = hashes_.try_emplace({setting, micro_batches, mask}, 0);
    if (added) {
      const Setting made = make_setting(setting);
      const Plan plan =
          make_small_plan(structure_of(made),
                          {.micro_batches = micro_batches, .owned = {micro_batches}, .mask = mask});
      known->second = run_plan(made, plan, 1, micro_batches);
    }
    return known->second;
  }

 private:
  std::map<std::tuple<int, int, std::string>, std::uint64_t> hashes_;
};

std::vector<int> chunks_of(const ScheduleFamily& family) {
  if (family.legal == ScheduleFamily::Chunks::kFixed) return {family.chunks};
  return {2, 4};
}

TEST(EverySchedule, EqualsOneDeviceBitForBit) {
  OneDevice one_device;
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);  // which optimizer
  int combinations = 0;
  std::map<ScheduleKind, int> seen;
  for (const ScheduleFamily& family : schedule_families()) {
    if (family.versions != WeightVersions::kSync) continue;
    for (const int devices : {2, 4}) {
      for (const int chunks : chunks_of(family)) {
        if (devices * chunks > kSmallLayers) continue;
        for (const int micro_batches : {5, 6, 8, 12}) {
          const Case one{family.kind, devices, chunks, micro_batches};
          SCOPED_TRACE(name_of(one));
          const auto index = static_cast<int>(random() % 2);
          const Setting setting = make_setting(index);
          Plan plan;
          try {
            plan = place(one, structure_of(setting));
          } catch (const InfeasibleError&) {
            continue;  // e.g. dualpipe with an odd number of micro-batches
          }
          EXPECT_EQ(run_plan(setting, plan, devices, micro_batches),
                    one_device.hash(index, micro_batches, one.mask));
          ++combinations;
          ++seen[family.kind];
        }
      }
    }
  }
  EXPECT_GE(combinations, 100);
  EXPECT_EQ(seen.size(), 20U) << "all but the two without a flush";
}

TEST(EverySchedule, EqualsOneDeviceUnderEveryPrefixAndRandomMasks) {
  OneDevice one_device;
  const unsigned seed = 20261124;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::string> masks = {"01111", "00111", "00011", "00001"};
  for (int b = 1; b < 16; ++b) {  // interior: a frozen block behind an active one, the head active
    std::string mask;
    for (int bit = 0; bit < 4; ++bit) mask += ((b >> bit) & 1) != 0 ? '1' : '0';
    mask += "1";
    if (mask.find("10") != std::string::npos) masks.push_back(mask);
  }
  int runs = 0;
  for (const ScheduleFamily& family : schedule_families()) {
    if (family.versions != WeightVersions::kSync) continue;
    for (int trial = 0; trial < 14; ++trial) {
      const bool is_prefix = trial < 4;
      const std::string mask = is_prefix ? masks[static_cast<std::size_t>(trial)]
                                         : masks[4 + random() % (masks.size() - 4)];
      const Case one{family.kind, 2, chunks_of(family).front(), 6, mask};
      SCOPED_TRACE(name_of(one));
      const Setting setting = make_setting(1);
      const Plan plan = place(one, structure_of(setting));
      EXPECT_EQ(run_plan(setting, plan, 2, 6), one_device.hash(1, 6, mask));
      ++runs;
    }
  }
  EXPECT_GE(runs, 280);
}

Schedule works_of(const Schedule& schedule) {
  Schedule works = schedule;
  for (std::vector<Action>& actions : works.devices) {
    std::erase_if(actions, [](const Action& action) {
      return !is_compute(action.kind) || action.kind == ActionKind::kUpdate;
    });
  }
  return works;
}

TEST(EverySchedule, IsPerformedInThePlannedOrder) {
  for (const ScheduleFamily& family : schedule_families()) {
    if (family.versions != WeightVersions::kSync) continue;
    const Case one{family.kind, 2, chunks_of(family).front(), 6};
    SCOPED_TRACE(name_of(one));
    const Setting setting = make_setting(0);
    const ModelProfile structure = structure_of(setting);
    const Plan plan = place(one, structure);
    const StepProgram program = make_program(plan, structure, 2, true);
    frazil::Run run(make_vit(setting.model), setting.optimizer, 7, 2);
    run.switch_to(plan);
    const StepResult result = run.step(0, 1e-2, small_micro_batches(0, 6), /*record=*/true);
    Schedule performed;
    performed.devices.resize(2);
    std::vector<TimePoint> ends(2);
    for (const Span& span : result.spans) {
      performed.devices[span.device.index()].push_back(span.action);
      EXPECT_LE(ends[span.device.index()], span.start) << "one after the other";
      ends[span.device.index()] = span.end;
    }
    EXPECT_EQ(to_text(performed), to_text(program.schedule));
    EXPECT_EQ(to_text(works_of(performed)), to_text(works_of(make_schedule(plan, 2))));
  }
}

// The last step has 5 of 6 micro-batches, the last of them short.
TEST(EverySchedule, TakesAShortBatchAndSaysWhatItRunsThen) {
  const auto run_short = [](const Setting& setting, const Plan& plan, int devices,
                            std::string& note) {
    frazil::Run run(make_vit(setting.model), setting.optimizer, 7, devices);
    run.switch_to(plan);
    run.step(0, 1e-2, small_micro_batches(0, 6));
    note = run.step(1, 1e-2, small_micro_batches(1, 5, 1)).note;
    return run.weight_hash();
  };
  const Setting setting = make_setting(0);
  const ModelProfile structure = structure_of(setting);
  std::string note;
  const std::uint64_t expected =
      run_short(setting, make_small_plan(structure, {.micro_batches = 6, .owned = {6}}), 1, note);
  int fallbacks = 0;
  for (const ScheduleFamily& family : schedule_families()) {
    if (family.versions != WeightVersions::kSync) continue;
    const Case one{family.kind, 2, chunks_of(family).front(), 6};
    SCOPED_TRACE(name_of(one));
    EXPECT_EQ(run_short(setting, place(one, structure), 2, note), expected);
    if (note.empty()) continue;
    ++fallbacks;
    EXPECT_EQ(note.find("a batch of 14 samples runs as "), 0U) << note;
  }
  EXPECT_GT(fallbacks, 0);
}

}  // namespace
}  // namespace frazil
