// Runs with slices follow the planned order and the simulation, take short batches, refuse what
// cannot be sliced, and take slices up and leave them between steps.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/sliced_runs.h"

namespace frazil {
namespace {

using DeviceActions = std::multiset<std::pair<DeviceId, std::string>>;

// Collects all actions but waits for messages and the host's own work, which only one side knows.
DeviceActions collect(const std::vector<Span>& spans) {
  DeviceActions actions;
  for (const Span& span : spans) {
    if (span.lane == Lane::kReceive || span.lane == Lane::kHost) continue;
    actions.emplace(span.device, to_text(span.action));
  }
  return actions;
}

TEST(SlicedRuns, PerformsThePlannedOrderAndWhatIsSimulated) {
  const TestModel model = vit_model();
  for (const auto& devices : sliced_distributions()) {
    const SlicedForm one{devices, lie_apart(devices) ? ScheduleKind::kZbH1 : ScheduleKind::kGpipe,
                         4};
    SCOPED_TRACE(name_of(one));
    const Plan plan = make_sliced_plan(model, one);
    frazil::Run run(model.spec, momentum_sgd(), 7, one.all_devices());
    run.transition_to(plan);
    const auto samples =
        model.samples({.micro_batches = one.micro_batches, .micro_batch_size = kSlicedSamples});
    const std::vector<Span> spans = run.step(0, kSlicedRate, samples, /*record=*/true).spans;
    const StepProgram program = make_program(plan, run.structure(), one.all_devices(), false);
    Schedule performed;
    performed.devices.resize(program.schedule.devices.size());
    for (const Span& span : spans) performed.devices[span.device.index()].push_back(span.action);
    EXPECT_EQ(to_text(performed), to_text(program.schedule));
    const ModelProfile profile = make_timed_structure(model.spec);
    const Cluster cluster = make_linked_cluster(one.all_devices());
    const Timeline simulated = simulate_plan(plan, {profile, cluster}).timeline;
    EXPECT_EQ(collect(spans), collect(simulated.spans));
  }
}

TEST(SlicedRuns, TakesAShortBatchInTurnWhereItsLastMicroBatchIsTooSmall) {
  const TestModel model = uneven_mlp_model();
  const SlicedForm one{{{0, 1, 2}, {3}}, ScheduleKind::kZbH1, 3};
  const auto run_short = [&](const SlicedForm& made, int short_by, std::string& note) {
    frazil::Run run(model.spec, undecayed_sgd(0), 7, made.all_devices());
    run.transition_to(make_sliced_plan(model, made));
    const StepResult result = run.step(
        0, kSlicedRate,
        model.samples(
            {.micro_batches = 3, .micro_batch_size = kSlicedSamples, .last_short_by = short_by}));
    note = result.note;
    SlicedOutcome outcome{{}, {result.loss}};
    outcome.layers = copy_states(run, model);
    return outcome;
  };
  std::string note;
  for (const int short_by : {1, 2, 3}) {
    SCOPED_TRACE(short_by);
    const SlicedOutcome found = run_short(one, short_by, note);
    EXPECT_EQ(note, short_by == 1
                        ? ""
                        : "a batch of " + std::to_string(12 - short_by) +
                              " samples runs as 2 stages x 1 pipeline on 3+1 devices, 1f1b, 3 "
                              "micro-batches of 4, the last of " +
                              std::to_string(4 - short_by) +
                              ", cut 3, for stage 0 of pipeline 0 shares micro-batches by samples "
                              "among 3 devices, but micro-batch 2 has " +
                              std::to_string(4 - short_by));
    expect_same_training(found, run_short({{{0}}}, short_by, note), 1e-6);
  }
}

// Makes a model in which one layer puts out the sum over its samples.
ModelSpec make_mixing_model() {
  ModelSpec model = uneven_mlp_model().spec;
  auto& forward = model.layers[1].forward;
  forward = [plain = forward](const LayerCall& call) -> Tensors {
    Tensors outputs = plain(call);
    outputs[0] = outputs[0].sum(0, /*keepdim=*/true);
    return outputs;
  };
  return model;
}

TEST(SlicedRuns, RefusesAModelWhoseBoundaryIsNotBySample) {
  TestModel model = uneven_mlp_model();
  model.spec = make_mixing_model();
  SlicedForm one{{{0, 1}, {2}}, ScheduleKind::kGpipe, 1};
  Plan plan = make_sliced_plan(model, one);
  plan.pipelines[0] = make_pipeline(7, {LayerId{2}}, {DeviceId{0}, DeviceId{2}},
                                    {MicroBatchId{0}, MicroBatchId{0}});
  plan.pipelines[0].stages[0].devices.emplace_back(1);
  plan.pipelines[0].stages[0].axis = DeviceAxis::kSamples;
  frazil::Run run(model.spec, undecayed_sgd(0), 7, 3);
  run.transition_to(plan);
  try {
    run.step(0, kSlicedRate,
             model.samples({.micro_batches = 1, .micro_batch_size = kSlicedSamples}));
    FAIL() << "nothing was thrown";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("layer 1 cannot work on a slice of a micro-batch: of a tensor of shape "
                        "[1, 6] dimension 0 does not count its 2 samples"),
              std::string::npos)
        << error.what();
  }
}

TEST(SlicedRuns, IsRefusedBeforeTrainingWhereItCannotBe) {
  const TestModel model = uneven_mlp_model();
  const auto refuse = [&](const std::function<void(Plan&)>& change) {
    frazil::Run run(model.spec, undecayed_sgd(0), 7, 3);
    Plan plan = make_sliced_plan(model, {{{0, 1}, {2}}});
    change(plan);
    try {
      run.transition_to(plan);
    } catch (const InfeasibleError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refuse([](Plan&) {}), "accepted");
  EXPECT_EQ(refuse([](Plan& plan) { plan.reduction = ReductionMode::kExact; }),
            "stage 0 of pipeline 0 shares micro-batches by samples, which goes with the reduction "
            "fast, not exact");
  EXPECT_EQ(refuse([](Plan& plan) {
              plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream};
              plan.versions = WeightVersions::kStash;
            }),
            "pipedream takes no stages on several devices; gpipe, 1f1b, eager-1f1b and zb-h1 do");
}

TEST(SlicedRuns, RefusesAStudentWithBatchNorm) {
  const TestModel model = distilled_vgg_model();
  frazil::Run run(model.spec, undecayed_sgd(0), 7, 2);
  try {
    run.transition_to(make_sliced_plan(model, {{{0, 1}}, ScheduleKind::kGpipe}));
    FAIL() << "nothing was thrown";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "stage 0 shares the samples of a micro-batch among its devices, but layer 2 "
                 "(student.stage1.0) mixes them in training");
  }
}

// Slices move like any other state: a run may take them up and leave them again.
TEST(SlicedRuns, IsTakenUpAndLeftBetweenSteps) {
  const TestModel model = encoder_model();
  const auto run_through = [&](const std::vector<SlicedForm>& cases) {
    frazil::Run run(model.spec, undecayed_sgd(0), 7, 4);
    for (std::size_t s = 0; s < cases.size(); ++s) {
      run.transition_to(make_sliced_plan(model, cases[s]));
      run.step(
          static_cast<Step>(s), kSlicedRate,
          model.samples({.seed = s + 1, .micro_batches = 3, .micro_batch_size = kSlicedSamples}));
    }
    SlicedOutcome outcome;
    outcome.layers = copy_states(run, model);
    return outcome;
  };
  expect_same_training(run_through({{{{0, 1}, {2}}}, {{{0}, {1}}}, {{{3}, {0, 1, 2}}}}),
                       run_through({{{{0}}}, {{{0}}}, {{{0}}}}), 1e-6);
}

}  // namespace
}  // namespace frazil
