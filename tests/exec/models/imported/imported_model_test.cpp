// Each test goes through the models that stock PyTorch has exported into the folder that
// FRAZIL_EXPORTED_MODELS names.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "exec/models/imported/imported_model.h"
#include "exec/models/imported/replay.h"
#include "exec/models/imported/witness.h"
#include "profiles/error.h"
#include "tests/exec/models/imported/exported_model.h"
#include "tests/exec/models/model_checks.h"
#include "tests/exec/models/trainable_checks.h"

namespace frazil {
namespace {

class ExportedModels : public ::testing::Test {
 protected:
  void SetUp() override {
    files_ = exported_files();
    if (files_.empty()) GTEST_SKIP() << "FRAZIL_EXPORTED_MODELS names no folder with models";
  }
  std::vector<std::filesystem::path> files_;
};

void expect_equal(const Replay& found, const Replay& expected) {
  EXPECT_TRUE(at::equal(found.loss, expected.loss));
  ASSERT_EQ(found.gradients.size(), expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    EXPECT_TRUE(at::equal(found.gradients.at(name), gradient)) << name;
  }
}

Replay replay(const ModelSpec& model, const Samples& samples, bool splits) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_current_seed(5);
  const RandomKey key{.seed = 5, .micro_batch = {}};
  return replay_step(model, samples, key, splits);
}

TEST_F(ExportedModels, HaveThePyTorchBitsOfTheirWitness) {
  for (const auto& path : files_) {
    SCOPED_TRACE(path.filename());
    try {
      EXPECT_EQ(check_witness(read_shared(path), present_fingerprint()), WitnessVerdict::kBits);
    } catch (const InputError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST_F(ExportedModels, HaveTheSameGradientsInTwoHalvesAsInOne) {
  int checked = 0;
  for (const auto& path : files_) {
    SCOPED_TRACE(path.filename());
    const auto model = read_shared(path);
    for (const Randomness randomness : {Randomness::kEager, Randomness::kKeyed}) {
      const ModelSpec spec = make_imported(model, randomness);
      const Samples samples = witness_samples(*model, 1);
      expect_equal(replay(spec, samples, true), replay(spec, samples, false));
      if (randomness == Randomness::kKeyed) ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

// True if a layer writes into what other layers read, too. It works on a copy, whose gradient a
// plain program of all layers adds in another place than PyTorch, which has no copy, does.
bool copies_shared_values(const ImportedGraph& graph) {
  const auto shares = [](const ImportedLayer& layer) {
    return std::set(layer.outputs.begin(), layer.outputs.end()).size() < layer.outputs.size();
  };
  const auto writes = [](const ImportedLayer& layer) {
    return std::any_of(layer.nodes.begin(), layer.nodes.end(), [](const ImportedNode& node) {
      return node.op.substr(0, node.op.find('.')).ends_with('_');
    });
  };
  return std::any_of(graph.layers.begin(), graph.layers.end(), shares) &&
         std::any_of(graph.layers.begin(), graph.layers.end(), writes);
}

TEST_F(ExportedModels, HaveTheBitsOfPlainTraining) {
  int checked = 0;
  for (const auto& path : files_) {
    SCOPED_TRACE(path.filename());
    const auto model = read_shared(path);
    if (copies_shared_values(model->graph)) continue;
    expect_plain_bits(exported_model(model));
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

TEST_F(ExportedModels, HaveTheBitsOfOneDeviceUnderManyPlans) {
  int checked = 0;
  for (const auto& path : files_) {
    SCOPED_TRACE(path.filename());
    EXPECT_GE(expect_bits_of_one_device(exported_model(read_shared(path)), clipped_adamw()), 9);
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

// As an adapter trains beside the weights of others, which stay.
TEST_F(ExportedModels, TakeNothingForWhatDoesNotTrain) {
  constexpr std::uint64_t kSeed = 7;
  constexpr int kDevices = 2;
  int checked = 0;
  for (const auto& path : files_) {
    SCOPED_TRACE(path.filename());
    const TestModel model = exported_model(read_shared(path));
    const auto has_untrainable = [](const LayerSpec& layer) {
      return !find_untrainable(layer).empty();
    };
    const std::vector<LayerSpec>& layers = model.spec.layers;
    if (std::none_of(layers.begin(), layers.end(), has_untrainable)) continue;
    expect_reductions_of_trainable_alone(model);
    frazil::Run run(model.spec, clipped_adamw(), kSeed, kDevices);
    run.transition_to(make_plan(model, {.replicas = kDevices}));
    for (Step step = 0; step < 2; ++step) {
      run.step(step, 1e-2, model.samples({.seed = static_cast<std::uint64_t>(step)}));
    }
    expect_state_of_trainable_alone(run, kSeed, FreezeMask::parse(model.mask, "test", 0));
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace frazil
