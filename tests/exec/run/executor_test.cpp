// The executor refuses what it does not perform yet in one sentence, on every device, without
// hanging.

#include "exec/run/executor.h"

#include <gtest/gtest.h>

#include "exec/communication/in_process_communicator.h"
#include "exec/devices/workers.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

Plan with_schedule(Plan plan, const std::vector<std::vector<std::string>>& lists) {
  ExplicitSchedule schedule;
  for (const std::vector<std::string>& list : lists) {
    schedule.devices.emplace_back();
    for (const std::string& text : list) schedule.devices.back().push_back(parse_action(text));
  }
  plan.schedule = schedule;
  return plan;
}

template <class Error, class Call>
std::string sentence_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string refusal(const PlanShape& shape, const std::vector<std::vector<std::string>>& lists) {
  Run run(make_vit(small_config()), {}, 7, devices_of(shape));
  return sentence_of<InfeasibleError>([&] {
    run.transition_to(with_schedule(make_small_plan(run.structure(), shape), lists));
    run.step(0, 1e-2, small_micro_batches(0, shape.micro_batches));
  });
}

TEST(Executor, RefusesAnActionOfSeveralMicroBatches) {
  EXPECT_EQ(refusal({.micro_batches = 2, .owned = {2}}, {{"0F0-1", "0B0", "0B1"}}),
            "rank 0, step 0, action 0F0-1: the executor does not perform 0F0-1 yet");
}

// Returns each device's failure; the device that does not fail itself waits for a gradient that
// never comes.
std::vector<std::string> failures_of(const Plan& plan, const ModelSpec& model,
                                     const ModelProfile& structure) {
  const StepProgram program = make_program(plan, structure, 2, false);
  const OptimizerConfig optimizer;
  const Measurement measurement;
  const auto communicators = make_in_process_communicators(2);
  std::vector<DeviceState> states(2);
  std::vector<Recorder> recorders;
  std::vector<std::unique_ptr<Executor>> executors;
  for (int d = 0; d < 2; ++d) recorders.emplace_back(DeviceId{d}, SteadyTime{});
  for (int l = 0; l < kSmallLayers; ++l) {
    states[l < 4 ? 0 : 1][LayerId{l}] = make_initial_state(model, LayerId{l}, 7);
  }
  for (std::size_t d = 0; d < 2; ++d) {
    executors.push_back(std::make_unique<Executor>(
        ExecutionContext{model, optimizer, program, DeviceId{d}, states[d], *communicators[d],
                         recorders[d], measurement}));
  }
  const std::vector<Samples> micro_batches = small_micro_batches(0, 2);
  const StepInput input{0, 7, 1e-2, &micro_batches, kSmallMicroBatch};
  std::vector<std::string> failures(2);
  Workers workers(2);
  const std::string thrown = sentence_of<InfeasibleError>([&] {
    workers.run(
        [&](DeviceId device) {
          try {
            executors[device.index()]->run_step(input);
          } catch (const PeerLost& error) {
            failures[device.index()] = std::string("PeerLost: ") + error.what();
            throw;
          } catch (const InfeasibleError& error) {
            failures[device.index()] = std::string("InfeasibleError: ") + error.what();
            throw;
          }
        },
        [&](const std::string& reason) { communicators[0]->abort(reason); });
  });
  failures.push_back(thrown);
  return failures;
}

TEST(Executor, OfAnotherDeviceLosesItsPeerInsteadOfHanging) {
  const ModelSpec model = make_vit(small_config());
  const ModelProfile structure = make_structure(model, 2);
  const Plan plan =
      with_schedule(make_small_plan(structure, {.micro_batches = 2, .cuts = {{4}}, .owned = {2}}),
                    {{"0F0", "0F1", "0B0", "0B1"}, {"1F0-1", "1B0", "1B1"}});
  const std::string sentence =
      "rank 1, step 0, action 1F0-1: the executor does not perform 1F0-1 yet";
  EXPECT_EQ(failures_of(plan, model, structure),
            (std::vector<std::string>{"PeerLost: " + sentence, "InfeasibleError: " + sentence,
                                      sentence}));
}

TEST(Executor, RefusesOnTwoDevicesThroughARunToo) {
  EXPECT_EQ(refusal({.micro_batches = 2, .cuts = {{4}}, .owned = {2}},
                    {{"0F0", "0F1", "0B0", "0B1"}, {"1F0-1", "1B0", "1B1"}}),
            "rank 1, step 0, action 1F0-1: the executor does not perform 1F0-1 yet");
}

TEST(Executor, RunsAnExplicitScheduleToTheSameBits) {
  const PlanShape shape{.micro_batches = 3, .owned = {3}};
  std::vector<std::uint64_t> hashes;
  for (const bool given : {false, true}) {
    frazil::Run run(make_vit(small_config()), {}, 7, 1);
    Plan plan = make_small_plan(run.structure(), shape);
    if (given) plan = with_schedule(plan, {{"0F0", "0F2", "0B2", "0F1", "0B0", "0B1"}});
    run.transition_to(plan);
    run.step(0, 1e-2, small_micro_batches(0, 3));
    hashes.push_back(run.weight_hash());
  }
  EXPECT_EQ(hashes[1], hashes[0]);
}

}  // namespace
}  // namespace frazil
