// Every schedule with a flush has the bits of one device over processes too, however they are
// linked: with clipping and dropout, frozen layers, and a short last batch. All of them run over
// one world, a third that is drawn over the others.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <set>

#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "tests/exec/support/kept_world.h"

namespace frazil {
namespace {

std::optional<Plan> find_plan(const FamilyForm& form, const TrainedVit& vit) {
  try {
    return place_family(form, structure_of(vit));
  } catch (const InfeasibleError&) {
    return std::nullopt;  // e.g. dualpipe with an odd number of micro-batches
  }
}

// Returns the schedules that were run.
std::set<ScheduleKind> run_forms(const ProcessShape& shape, std::vector<FamilyForm> forms,
                                 unsigned seed, std::size_t one_of) {
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  if (one_of > 1) {
    std::shuffle(forms.begin(), forms.end(), random);
    forms.resize(forms.size() / one_of);
  }
  KeptWorld worlds[kTrainedVits] = {{make_trained_vit(0), shape}, {make_trained_vit(1), shape}};
  OneDevice one_device;
  std::set<ScheduleKind> seen;
  for (const FamilyForm& form : forms) {
    SCOPED_TRACE(name_of(form));
    const auto index = static_cast<int>(random() % kTrainedVits);
    const std::optional<Plan> plan = find_plan(form, worlds[index].vit());
    if (!plan) continue;
    EXPECT_EQ(worlds[index].hash(*plan, form.micro_batches),
              one_device.hash(index, form.micro_batches, form.mask));
    seen.insert(form.kind);
  }
  return seen;
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceOverTwo) {
  const std::set<ScheduleKind> seen =
      run_forms({{0, 1}}, list_forms(2, {5, 8}), std::random_device{}(), 1);
  EXPECT_EQ(seen.size(), synchronous_schedules().size());
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceOverFour) {
  const auto seen = run_forms({{0, 1, 2, 3}}, list_forms(4, {8, 12}), std::random_device{}(), 3);
  EXPECT_GT(seen.size(), 3U);
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceOverTwoWithTwoDevicesEach) {
  const auto seen = run_forms({{0, 0, 1, 1}}, list_forms(4, {8, 12}), std::random_device{}(), 3);
  EXPECT_GT(seen.size(), 3U);
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceOverTcp) {
  const auto seen = run_forms({.process_of = {0, 1}, .links = ProcessLinks::kTcp},
                              list_forms(2, {6, 8}), std::random_device{}(), 3);
  EXPECT_GT(seen.size(), 3U);
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceByGloo) {
  const auto seen = run_forms({.process_of = {0, 1}, .links = ProcessLinks::kGloo},
                              list_forms(2, {6, 8}), std::random_device{}(), 3);
  EXPECT_GT(seen.size(), 3U);
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceUnderMasks) {
  const std::vector<std::string> masks = list_masks();
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  std::vector<FamilyForm> forms;
  for (FamilyForm form : list_forms(2, {6})) {
    form.mask = masks[random() % masks.size()];
    forms.push_back(std::move(form));
  }
  const std::set<ScheduleKind> seen = run_forms({{0, 1}}, std::move(forms), seed, 1);
  EXPECT_EQ(seen.size(), synchronous_schedules().size());
}

// The last step has 5 of 6 micro-batches, and its last micro-batch is short.
TEST(SchedulesOverProcesses, TakeAShortBatch) {
  const TrainedVit vit = make_trained_vit(0);
  const auto run_short = [](auto& run, const Plan& plan) {
    run.transition_to(plan);
    run.step(0, 1e-2, small_micro_batches(0, 6));
    run.step(1, 1e-2, small_micro_batches(1, 5, 1));
    return run.weight_hash();
  };
  frazil::Run alone(make_vit(vit.model), vit.optimizer, 7, 1);
  const std::uint64_t expected =
      run_short(alone, make_small_plan(alone.structure(), {.micro_batches = 6, .owned = {6}}));
  KeptWorld world(vit, {{0, 1}});
  for (const FamilyForm& form : list_forms(2, {6})) {
    SCOPED_TRACE(name_of(form));
    if (const auto plan = find_plan(form, vit)) {
      EXPECT_EQ(run_short(world.begin(), *plan), expected);
    }
  }
}

}  // namespace
}  // namespace frazil
