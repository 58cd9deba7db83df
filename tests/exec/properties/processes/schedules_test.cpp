// Every schedule with a flush has the bits of one device over processes too, however they are
// linked: with clipping and dropout, frozen layers, and a short last batch. All of them run over
// one world, a third that is drawn over the others, with each schedule in it.

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

// Returns the plan in a world of so many devices. A form has none only where its micro-batches do
// not come out even.
std::optional<Plan> find_plan(const FamilyForm& form, const TrainedVit& vit, std::size_t devices) {
  try {
    Plan plan = place_family(form, structure_of(vit));
    // Devices without a stage have an empty list.
    auto* const lists = std::get_if<ExplicitSchedule>(&plan.schedule);
    if (lists != nullptr) lists->devices.resize(devices);
    return plan;
  } catch (const InfeasibleError& error) {
    EXPECT_NE(form.micro_batches % form.devices, 0) << error.what();
    return std::nullopt;
  }
}

bool is_even(const FamilyForm& form) { return form.micro_batches % form.devices == 0; }

std::set<ScheduleKind> kinds_of(const std::vector<FamilyForm>& forms) {
  std::set<ScheduleKind> kinds;
  for (const FamilyForm& form : forms) kinds.insert(form.kind);
  return kinds;
}

// Returns a third of the forms, or one of each schedule, if that is more.
std::vector<FamilyForm> draw_third(std::vector<FamilyForm> forms, std::mt19937& random) {
  std::shuffle(forms.begin(), forms.end(), random);
  std::set<ScheduleKind> drawn;
  const auto others = std::stable_partition(
      forms.begin(), forms.end(),
      [&](const FamilyForm& form) { return is_even(form) && drawn.insert(form.kind).second; });
  const std::size_t firsts = static_cast<std::size_t>(others - forms.begin());
  forms.resize(std::max(firsts, forms.size() / 3));
  return forms;
}

// Runs all forms, or a third of them, each schedule among them.
void run_forms(const ProcessShape& shape, std::vector<FamilyForm> forms, unsigned seed,
               bool draws_third) {
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const std::set<ScheduleKind> expected = kinds_of(forms);
  if (draws_third) forms = draw_third(std::move(forms), random);
  KeptWorld worlds[kTrainedVits] = {{make_trained_vit(0), shape}, {make_trained_vit(1), shape}};
  OneDevice one_device;
  std::set<ScheduleKind> seen;
  for (const FamilyForm& form : forms) {
    SCOPED_TRACE(name_of(form));
    const auto index = static_cast<int>(random() % kTrainedVits);
    const std::optional<Plan> plan = find_plan(form, worlds[index].vit(), shape.process_of.size());
    if (!plan) continue;
    EXPECT_EQ(worlds[index].hash(*plan, form.micro_batches),
              one_device.hash(index, form.micro_batches, form.mask));
    seen.insert(form.kind);
  }
  EXPECT_EQ(seen, expected);
}

void run_third(const ProcessShape& shape, std::vector<FamilyForm> forms) {
  run_forms(shape, std::move(forms), std::random_device{}(), true);
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceOverTwo) {
  const std::vector<FamilyForm> forms = list_forms(2, {5, 8});
  EXPECT_EQ(kinds_of(forms).size(), synchronous_schedules().size());
  run_forms({{0, 1}}, forms, std::random_device{}(), false);
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceOverFour) {
  run_third({{0, 1, 2, 3}}, list_forms(4, {8, 12}));
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceOverTwoWithTwoDevicesEach) {
  run_third({{0, 0, 1, 1}}, list_forms(4, {8, 12}));
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceOverTcp) {
  run_third({.process_of = {0, 1}, .links = ProcessLinks::kTcp}, list_forms(2, {6, 8}));
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceByGloo) {
  run_third({.process_of = {0, 1}, .links = ProcessLinks::kGloo}, list_forms(2, {6, 8}));
}

// The plans use the first two devices.
TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceWhereAProcessSleeps) {
  run_third({{0, 1, 2}}, list_forms(2, {6}));
}

TEST(SchedulesOverProcesses, HaveTheBitsOfOneDeviceInsideOneOfTwoProcesses) {
  run_third({{0, 0, 1}}, list_forms(2, {6}));
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
  run_forms({{0, 1}}, std::move(forms), seed, false);
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
    if (const auto plan = find_plan(form, vit, 2)) {
      EXPECT_EQ(run_short(world.begin(), *plan), expected);
    }
  }
}

}  // namespace
}  // namespace frazil
