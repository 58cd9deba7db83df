// Parameters that are not trainable take no gradient, moment or message, and nothing else changes:
// not the bits under any plan, not dropout in their blocks.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "exec/checkpoint/checkpoint_file.h"
#include "exec/models/untrainable_blocks.h"
#include "exec/run/freeze_signals.h"
#include "exec/run/move_layers.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/models/locked_models.h"
#include "tests/exec/models/model_checks.h"
#include "tests/exec/models/random_forms.h"
#include "tests/exec/models/trainable_checks.h"
#include "tests/exec/support/cached_courses.h"
#include "tests/exec/support/family_plans.h"
#include "tests/exec/support/measured_memories.h"

namespace frazil {
namespace {

constexpr std::uint64_t kLockedSeed = 7;

std::string with_frozen(const std::string& mask, std::size_t block) {
  std::string frozen = mask;
  frozen[block] = '0';
  return frozen;
}

// The plain program drops in the blocks of such parameters, and in frozen blocks it does not.
TEST(UntrainableParameters, LeaveTheBitsOfAPlainProgram) {
  for (const TestModel& model : locked_models()) {
    SCOPED_TRACE(model.spec.name);
    expect_plain_bits(model);
    for (std::size_t block = 0; block + 1 < model.mask.size(); ++block) {
      expect_plain_bits(model, with_frozen(model.mask, block));
    }
  }
}

TEST(UntrainableParameters, LeaveTheBitsOfOneDeviceUnderEveryPlan) {
  const std::vector<TestModel> models = locked_models();
  for (std::size_t i = 0; i < models.size(); ++i) {
    SCOPED_TRACE(models[i].spec.name);
    EXPECT_GE(expect_bits_of_one_device(models[i], i % 2 == 0 ? clipped_adamw() : momentum_sgd()),
              37);
  }
}

TEST(UntrainableParameters, TakeNoMomentsAndStayAsTheyAreUnderRandomPlansAndMasks) {
  const unsigned seed = 20261127;
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomForms random(seed);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{4}}) {
    const TestModel model = locked_models()[i];
    for (int trial = 0; trial < 6; ++trial) {
      const std::string mask = random.mask(model);
      PlanForm first = random.form(model, mask);
      const PlanForm second{.devices = std::min(2, first.all_devices()),
                            .micro_batches = first.micro_batches};
      SCOPED_TRACE(model.spec.name + ", " + name_of(first));
      std::vector<std::uint64_t> hashes;
      for (const bool moves : {true, false}) {
        if (!moves) first = {.micro_batches = first.micro_batches, .mask = mask};
        frazil::Run run(model.spec, clipped_adamw(), kLockedSeed, first.all_devices());
        run.transition_to(make_plan(model, first));
        const auto step_on = [&](Step step) {
          run.step(step, 1e-2,
                   model.samples({.seed = static_cast<std::uint64_t>(step),
                                  .micro_batches = first.micro_batches}));
        };
        step_on(0);
        step_on(1);
        expect_state_of_trainable_alone(run, kLockedSeed, FreezeMask::parse(mask, "test", 0));
        run.transition_to(moves ? make_plan(model, second)
                                : make_plan(model, {.micro_batches = first.micro_batches}));
        step_on(2);
        expect_state_of_trainable_alone(run, kLockedSeed, FreezeMask::parse(model.mask, "test", 0));
        hashes.push_back(run.weight_hash());
      }
      EXPECT_EQ(hashes[0], hashes[1]);
    }
  }
}

TEST(UntrainableParameters, TravelWithTheirLayers) {
  const ModelSpec model = locked_models()[0].spec;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerState state = make_initial_state(model, LayerId{l}, kLockedSeed);
    for (const bool freezes : {false, true}) {
      const LayerState taken = unpack(pack(state, freezes), {});
      EXPECT_EQ(taken.untrainable, find_untrainable(model.layers[l]));
      EXPECT_EQ(taken.parameters.size(), state.parameters.size());
    }
    EXPECT_EQ(clone(state).untrainable, state.untrainable);
  }
}

// A run goes on from its checkpoint, which has moments of trainable parameters alone, with the bits
// of one that was not interrupted.
TEST(UntrainableParameters, GoOnFromACheckpoint) {
  const TestModel model = locked_models()[0];
  const auto step_on = [&](frazil::Run& run, Step step) {
    run.step(step, 1e-2, model.samples({.seed = static_cast<std::uint64_t>(step)}));
  };
  frazil::Run whole(model.spec, clipped_adamw(), kLockedSeed, 2);
  whole.transition_to(make_plan(model, {.devices = 2, .cuts = {3}}));
  step_on(whole, 0);
  const std::vector<LayerState> states = whole.gather_states();
  std::vector<const LayerState*> held;
  for (const LayerState& state : states) held.push_back(&state);
  DiskModel disk;
  const RunIdentity identity{.model_hash = "model", .run_hash = 1};
  write_checkpoint(disk.files(), "one.safetensors", model.spec, identity,
                   {.step = 1, .steps = 2, .mask = FreezeMask::parse(model.mask, "test", 0)}, held);
  Checkpoint read = read_checkpoint(disk.files(), "one.safetensors", model.spec, identity);
  for (std::size_t l = 0; l < read.layers.size(); ++l) {
    EXPECT_EQ(read.layers[l].first_moment.size(), count_trainable(model.spec.layers[l]));
  }
  frazil::Run later(model.spec, clipped_adamw(), kLockedSeed, 1);
  later.restore(std::move(read.layers));
  later.transition_to(make_plan(model, {}));
  step_on(whole, 1);
  step_on(later, 1);
  EXPECT_EQ(later.weight_hash(), whole.weight_hash());
}

TEST(UntrainableParameters, TakeTheMemoryThatTheSimulatorSays) {
  const unsigned seed = 20261128;
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomForms random(seed);
  int compared = 0;
  for (const TestModel& model : locked_models()) {
    for (const OptimizerConfig& optimizer : {clipped_adamw(), momentum_sgd()}) {
      const std::vector<Samples> samples = model.samples({.seed = 1, .micro_batches = 6});
      const ModelProfile profile = make_measured_profile(model.spec, optimizer, samples.front());
      for (const PlanForm& form : std::vector<PlanForm>{
               {.devices = 2, .micro_batches = 6},
               {.schedule = ScheduleKind::kGpipe, .devices = 3, .micro_batches = 6},
               {.schedule = ScheduleKind::kZbH1, .devices = 2, .micro_batches = 6},
               {.devices = 1, .micro_batches = 6, .replicas = 2},
               {.devices = 2,
               .micro_batches = 6,
               .replicas = 2,
               .mask = with_frozen(model.mask, 1)}}) {
        SCOPED_TRACE(model.spec.name + ", " + name_of(form));
        expect_equal(measure_memories(model.spec, optimizer, profile, make_plan(model, form),
                                      form.all_devices(),
                                      {samples, model.samples({.seed = 2, .micro_batches = 6})}));
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 60);
}

// Of weights that schedules keep in several versions, those that do not train are held once.
TEST(UntrainableParameters, TakeTheMemoryThatTheSimulatorSaysWithWeightVersions) {
  const ModelSpec model =
      lock(make_vit(small_config()), {"*.query_key_value.weight", "vit.encoder.layer.1.*"});
  const OptimizerConfig optimizer = momentum_sgd();
  const ModelProfile profile =
      make_measured_profile(model, optimizer, small_micro_batches(0, 1).front());
  int compared = 0;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.versions == WeightVersions::kSync) continue;
    const FamilyForm form{facts.kind, 4, chunks_of(facts).front(), 8};
    SCOPED_TRACE(name_of(form));
    expect_equal(measure_memories(model, optimizer, profile, place_family(form, profile), 4,
                                  {small_micro_batches(0, 8), small_micro_batches(1, 8)}));
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

// Blocks without trainable parameters in evaluation mode are as the same blocks frozen by a mask.
TEST(UntrainableBlocks, InEvaluationAreAsFrozenOnes) {
  const TestModel model = lock(encoder_model(), {"bert.embeddings.*", "bert.encoder.layer.0.*"});
  TestModel evaluated = model;
  evaluated.spec = evaluate_untrainable(model.spec);
  const auto train = [](const TestModel& some, const std::string& mask) {
    return train_two_steps(some, clipped_adamw(), {.devices = 2, .mask = mask});
  };
  EXPECT_EQ(train(evaluated, "1111"), train(model, "0011"));
  EXPECT_NE(train(model, "1111"), train(model, "0011")) << "dropout is in force";
  EXPECT_EQ(tell_untrainable(model.spec),
            "blocks 0 (embedding), 1 (" + model.spec.blocks[1] +
                ") have no trainable parameter and run in evaluation mode");
  EXPECT_EQ(tell_untrainable(encoder_model().spec), "");
}

// PipeTransformer's rule freezes up to the block with the smallest gradient norm: one that has no
// gradient must not be it.
TEST(UntrainableBlocks, AreNotThoseWithTheSmallestGradient) {
  const ModelSpec model = lock(make_vit(small_config()), {"vit.embeddings.*"});
  const std::vector<double> squares{0, 9, 16, 1, 0, 4, 0, 0.25};
  const std::vector<double> norms = gradient_norms(model, squares);
  EXPECT_EQ(norms, (std::vector<double>{kLargestReading, 5, 1, 2, 0.5}));
  const std::map<std::string, double> told = list_signals({.gradient_norms = norms});
  EXPECT_EQ(told.size(), 4U);
  EXPECT_FALSE(told.contains("gradient_norms.0"));
}

// A layer that kept silent about its draws would have one of them cached for all epochs.
TEST(SmallModels, TellWhichLayersVaryInTraining) {
  VitConfig dropping = small_config();
  dropping.dropout = 0.5;
  const std::vector<std::pair<ModelSpec, Samples>> models{
      {make_vit(small_config()), small_micro_batches(0, 1).front()},
      {make_vit(dropping), small_micro_batches(0, 1).front()},
      {encoder_model().spec, encoder_model().samples({.seed = 1}).front()},
      {decoder_model().spec, decoder_model().samples({.seed = 1}).front()},
      {uneven_mlp_model().spec, uneven_mlp_model().samples({.seed = 1}).front()},
      {small_cnn_model().spec, small_cnn_model().samples({.seed = 1}).front()},
      {distillation_model().spec, distillation_model().samples({.seed = 1}).front()}};
  for (const auto& [model, samples] : models) {
    const std::vector<Tensors> outputs = example_outputs(model, samples);
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      const Tensors parameters = initial_parameters(model, LayerId{l}, 0);
      const Tensors read = read_inputs(model, LayerId{l}, outputs, samples.inputs);
      const Tensors training =
          model.layers[l].forward({LayerId{l}, parameters, read, {1, 2, MicroBatchId{0}}, true});
      bool varies = false;
      for (std::size_t o = 0; o < training.size(); ++o) {
        varies = varies || !at::equal(training[o], outputs[l][o]);
      }
      EXPECT_EQ(varies, model.layers[l].varies_in_training)
          << model.name << ", " << model.layers[l].name;
    }
  }
}

// The embedding draws nothing, so it is cached at once. The block after it drops, and is cached
// only in evaluation mode.
TEST(UntrainableBlocks, AreCachedUnlessTheyDraw) {
  const std::vector<PlanShape> epochs{{.cuts = {{4}}}, {.cuts = {{4}, {}}, .owned = {4, 2}}};
  for (const bool evaluates : {false, true}) {
    CourseOptions options;
    options.prepare = [evaluates](ModelSpec model) {
      model = lock(std::move(model), {"vit.embeddings.*", "vit.encoder.layer.0.*"});
      return evaluates ? evaluate_untrainable(std::move(model)) : model;
    };
    const Course plain = take_course(epochs, options);
    options.cache = ample_memory();
    const Course cached = take_course(epochs, options);
    EXPECT_EQ(cached.losses, plain.losses);
    EXPECT_EQ(cached.weights, plain.weights);
    std::vector<std::int64_t> expected(kSmallLayers, kCourseSamples);
    EXPECT_EQ(plain.forwards.at(1), expected);
    std::fill_n(expected.begin(), evaluates ? 3 : 1, std::int64_t{0});
    EXPECT_EQ(cached.forwards.at(1), expected);
    EXPECT_EQ(cached.counts.found, kCourseSamples);
  }
}

}  // namespace
}  // namespace frazil
