// Every schedule with a flush, on every placement, has the bits of one device, with frozen layers
// anywhere.

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "tests/exec/support/schedule_cases.h"

namespace frazil {
namespace {

std::uint64_t run_plan(const TrainedVit& vit, const Plan& plan, int devices, int micro_batches) {
  Run run(make_vit(vit.model), vit.optimizer, 7, devices);
  return train_two_steps(run, vit, plan, micro_batches);
}

TEST(EverySchedule, EqualsOneDeviceBitForBit) {
  OneDevice one_device;
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);  // which optimizer
  int combinations = 0;
  std::map<ScheduleKind, std::set<int>> seen;  // devices
  for (const int devices : {2, 4}) {
    for (const FamilyForm& one : list_forms(devices, {5, 6, 8, 12})) {
      SCOPED_TRACE(name_of(one));
      const auto index = static_cast<int>(random() % kTrainedVits);
      const TrainedVit vit = make_trained_vit(index);
      Plan plan;
      try {
        plan = place_family(one, structure_of(vit));
      } catch (const InfeasibleError&) {
        continue;  // e.g. dualpipe with an odd number of micro-batches
      }
      EXPECT_EQ(run_plan(vit, plan, devices, one.micro_batches),
                one_device.hash(index, one.micro_batches, one.mask));
      ++combinations;
      seen[one.kind].insert(devices);
    }
  }
  EXPECT_GE(combinations, 100);
  EXPECT_EQ(seen.size(), synchronous_schedules().size());
  for (const auto& [kind, devices] : seen) {
    EXPECT_EQ(devices, (std::set<int>{2, 4})) << schedule_name(kind);
  }
}

TEST(EverySchedule, EqualsOneDeviceUnderEveryPrefixAndRandomMasks) {
  OneDevice one_device;
  const unsigned seed = 20261124;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> masks = list_masks();
  int runs = 0;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.versions != WeightVersions::kSync) continue;
    for (int trial = 0; trial < 8; ++trial) {
      const bool is_prefix = trial < 4;
      const std::string mask = is_prefix ? masks[static_cast<std::size_t>(trial)]
                                         : masks[4 + random() % (masks.size() - 4)];
      const FamilyForm one{facts.kind, 2, chunks_of(facts).front(), 6, mask};
      SCOPED_TRACE(name_of(one));
      const TrainedVit vit = make_trained_vit(1);
      const Plan plan = place_family(one, structure_of(vit));
      EXPECT_EQ(run_plan(vit, plan, 2, 6), one_device.hash(1, 6, mask));
      ++runs;
    }
  }
  EXPECT_EQ(runs, 8 * static_cast<int>(synchronous_schedules().size()));
}

// The last step has 5 of 6 micro-batches, and its last micro-batch is short.
TEST(EverySchedule, TakesAShortBatchAndSaysWhatItRunsThen) {
  const auto run_short = [](const TrainedVit& vit, const Plan& plan, int devices,
                            std::string& note) {
    frazil::Run run(make_vit(vit.model), vit.optimizer, 7, devices);
    run.transition_to(plan);
    run.step(0, 1e-2, small_micro_batches(0, 6));
    note = run.step(1, 1e-2, small_micro_batches(1, 5, 1)).note;
    return run.weight_hash();
  };
  const TrainedVit vit = make_trained_vit(0);
  const ModelProfile structure = structure_of(vit);
  std::string note;
  const std::uint64_t expected =
      run_short(vit, make_small_plan(structure, {.micro_batches = 6, .owned = {6}}), 1, note);
  int fallbacks = 0;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.versions != WeightVersions::kSync) continue;
    const FamilyForm one{facts.kind, 2, chunks_of(facts).front(), 6};
    SCOPED_TRACE(name_of(one));
    EXPECT_EQ(run_short(vit, place_family(one, structure), 2, note), expected);
    if (note.empty()) continue;
    ++fallbacks;
    EXPECT_EQ(note.find("a batch of 14 samples runs as "), 0U) << note;
  }
  EXPECT_GT(fallbacks, 0);
}

}  // namespace
}  // namespace frazil
