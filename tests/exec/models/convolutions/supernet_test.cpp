// A supernet draws the operations of its cells as its architecture parameters say, moves what it
// has drawn alone, and learns its architecture by the gradients of the gates.
#include "exec/models/convolutions/supernet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/models/convolutions/plain_mobilenet.h"
#include "tests/exec/models/model_plans.h"

namespace frazil {
namespace {

constexpr std::uint64_t kSupernetSeed = 11;
constexpr double kSupernetRate = 0.125;

std::vector<Samples> batch_of(const TestModel& model, Step step) {
  return model.samples(
      {.seed = static_cast<std::uint64_t>(step) + 1, .last_short_by = static_cast<int>(step % 2)});
}

bool is_cell(const LayerSpec& layer) {
  return !layer.parameters.empty() && layer.parameters.front().name.ends_with(".architecture");
}

RandomKey key_of(Step step, int micro_batch = 0) {
  return {.seed = kSupernetSeed, .step = step, .micro_batch = MicroBatchId{micro_batch}};
}

TEST(Supernet, DrawsAnOperationAsOftenAsTheSoftmaxSays) {
  const at::Tensor architecture = at::tensor({0.5F, -1.0F, 2.0F, 0.0F, 0.0F, -3.0F, 1.0F});
  const std::vector<double> probabilities = find_probabilities(architecture);
  const at::Tensor softmax = at::softmax(architecture.to(at::kDouble), 0);
  constexpr int kDraws = 20'000;
  std::vector<int> counts(7);
  for (int d = 0; d < kDraws; ++d) ++counts[draw_operation(architecture, LayerId{3}, key_of(d))];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double p = softmax[static_cast<std::int64_t>(i)].item<double>();
    EXPECT_NEAR(probabilities[i], p, 1e-12);
    const double deviation = std::sqrt(p * (1 - p) / kDraws);
    EXPECT_NEAR(static_cast<double>(counts[i]) / kDraws, p, 4 * deviation) << "operation " << i;
  }
}

TEST(Supernet, DrawsAfreshForEachStepLayerAndSeedAndNothingElse) {
  const at::Tensor architecture = at::zeros({7});
  int layers_agree = 0;
  int steps_agree = 0;
  int seeds_agree = 0;
  constexpr int kSteps = 700;
  for (int step = 0; step < kSteps; ++step) {
    const std::size_t drawn = draw_operation(architecture, LayerId{1}, key_of(step));
    EXPECT_EQ(draw_operation(architecture, LayerId{1}, key_of(step, 3)), drawn);
    layers_agree += draw_operation(architecture, LayerId{2}, key_of(step)) == drawn ? 1 : 0;
    steps_agree += draw_operation(architecture, LayerId{1}, key_of(step + 1)) == drawn ? 1 : 0;
    RandomKey other = key_of(step);
    ++other.seed;
    seeds_agree += draw_operation(architecture, LayerId{1}, other) == drawn ? 1 : 0;
  }
  for (const int agree : {layers_agree, steps_agree, seeds_agree}) {
    EXPECT_NEAR(agree, kSteps / 7, 40) << "a seventh agrees by chance";
  }
}

TEST(Supernet, TakesEveryFifthStepForItsArchitectureOrAsItIsTold) {
  const auto list = [](const SupernetConfig& config) {
    std::vector<Step> steps;
    for (Step step = 0; step < 16; ++step) {
      if (is_architecture_step(config, step)) steps.push_back(step);
    }
    return steps;
  };
  EXPECT_EQ(list({}), (std::vector<Step>{4, 9, 14}));
  EXPECT_EQ(list({.shape = {}, .architecture_every = 5, .architecture_from = 6}),
            (std::vector<Step>{9, 14}));
  EXPECT_EQ(list({.shape = {}, .architecture_every = 4}), (std::vector<Step>{3, 7, 11, 15}));
  EXPECT_EQ(list({.shape = {}, .architecture_every = 0}), (std::vector<Step>{}));
  EXPECT_EQ(list({.shape = {}, .architecture_every = 1, .architecture_from = 14}),
            (std::vector<Step>{14, 15}));
}

TEST(Supernet, HoldsEveryOperationOfEachCellAndZeroWhereThereIsASkip) {
  const ModelSpec model = make_supernet(small_supernet());
  for (const std::vector<CellShape>& stage : list_cells(small_supernet().shape)) {
    for (const CellShape& cell : stage) {
      const auto layer =
          std::find_if(model.layers.begin(), model.layers.end(),
                       [&](const LayerSpec& some) { return some.name == cell.name; });
      ASSERT_NE(layer, model.layers.end());
      EXPECT_EQ(layer->parameters.front().shape.front(), cell.has_skip() ? 7 : 6);
      EXPECT_EQ(layer->parameters.size(), 1U + 6 * 9) << "three convolutions with norms each";
      EXPECT_EQ(layer->parameters[1].name, cell.name + ".k3e3.expand.weight");
      EXPECT_EQ(layer->parameters.back().name, cell.name + ".k7e6.project.norm.bias");
      EXPECT_TRUE(layer->varies_in_training);
    }
  }
  EXPECT_EQ(model.layers[3].name, "stage2.0") << "its stride is 2";
  EXPECT_EQ(model.layers[3].parameters.front().shape.front(), 6);
}

void choose_drawn(const ModelSpec& model, const std::vector<LayerState>& states, Step step,
                  PlainMobilenet& plain) {
  for (std::size_t l = 0; l < states.size(); ++l) {
    if (!is_cell(model.layers[l])) continue;
    plain.choose(model.layers[l].name,
                 draw_operation(states[l].parameters[0], LayerId{l}, key_of(step)));
  }
}

void expect_statistics(const LayerSpec& layer, const LayerState& state, PlainMobilenet& plain) {
  for (std::size_t s = 0; s < layer.statistics.size(); ++s) {
    if (state.statistics[s].scalar_type() == at::kLong) continue;
    const auto found = plain.statistics.find(layer.statistics[s].name);
    const at::Tensor expected =
        found == plain.statistics.end() ? layer.statistics[s].value : found->second;
    EXPECT_LT((state.statistics[s] - expected).abs().max().item<double>(), 1e-6)
        << layer.statistics[s].name;
  }
}

// The plain program runs what is drawn, and its optimizer leaves what has no gradient.
TEST(Supernet, TrainsToTheBitsOfAPlainProgramOfTheDrawnOperations) {
  for (const bool batch_norm : {false, true}) {
    SupernetConfig config = small_supernet();
    config.shape.batch_norm = batch_norm;
    config.architecture_every = 0;
    const TestModel model = supernet_model(config);
    OptimizerConfig optimizer = momentum_sgd();
    optimizer.momentum = 0;
    frazil::Run run(model.spec, optimizer, kSupernetSeed, 3);
    run.transition_to(make_plan(model, {.schedule = ScheduleKind::kZbH1, .devices = 3}));
    PlainMobilenet plain(config.shape, /*is_supernet=*/true, model.spec, kSupernetSeed);
    for (Step step = 0; step < 5; ++step) {
      choose_drawn(model.spec, run.gather_states(), step, plain);
      const std::vector<Samples> micro_batches = batch_of(model, step);
      EXPECT_EQ(run.step(step, kSupernetRate, micro_batches).loss,
                plain.step(micro_batches, kSupernetRate));
      const std::vector<LayerState> states = run.gather_states();
      for (std::size_t l = 0; l < states.size(); ++l) {
        const LayerSpec& layer = model.spec.layers[l];
        for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
          const std::string& name = layer.parameters[p].name;
          EXPECT_TRUE(at::equal(states[l].parameters[p], plain.weights.at(name))) << name;
        }
        expect_statistics(layer, states[l], plain);
      }
    }
  }
}

TEST(Supernet, RunsItsMostProbableOperationsInEvaluation) {
  const TestModel model = supernet_model();
  frazil::Run run(model.spec, momentum_sgd(), kSupernetSeed, 1);
  run.transition_to(make_plan(model, {}));
  PlainMobilenet plain(small_supernet().shape, /*is_supernet=*/true, model.spec, kSupernetSeed);
  for (const LayerSpec& layer : model.spec.layers) {
    if (!is_cell(layer)) continue;
    const at::Tensor& architecture = plain.weights.at(layer.parameters[0].name);
    plain.choose(layer.name, static_cast<std::size_t>(architecture.argmax().item<std::int64_t>()));
  }
  const Samples samples = model.samples({.seed = 9}).front();
  const at::Tensor logits = plain.classify(samples.inputs.at(0), /*training=*/false);
  EXPECT_NEAR(run.evaluate(SampleSource(samples), 3).loss,
              at::cross_entropy_loss(logits, samples.labels).item<double>(), 1e-5);
  EXPECT_EQ(most_probable(at::tensor({1.0F, 2.0F, 2.0F})), 1U) << "the first of equals";
}

// What a step moves of a layer, by the names of what holds other bits than before.
std::vector<std::string> list_moved(const LayerSpec& layer, const LayerState& before,
                                    const LayerState& after) {
  std::vector<std::string> moved;
  const auto add = [&](const std::string& name, const Tensors& old, const Tensors& now,
                       std::size_t place) {
    if (!now.empty() &&
        (old.empty() ? at::any(now[place]).item<bool>() : !at::equal(old[place], now[place]))) {
      moved.push_back(name);
    }
  };
  for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
    add(layer.parameters[p].name, before.parameters, after.parameters, p);
    add("m of " + layer.parameters[p].name, before.first_moment, after.first_moment, p);
    add("v of " + layer.parameters[p].name, before.second_moment, after.second_moment, p);
  }
  for (std::size_t s = 0; s < layer.statistics.size(); ++s) {
    add(layer.statistics[s].name, before.statistics, after.statistics, s);
  }
  return moved;
}

// Neither momentum nor weight decay moves what was not drawn, nor weights in an architecture step.
TEST(Supernet, MovesWhatItHasDrawnOrItsArchitectureAlone) {
  const TestModel model =
      supernet_model({.shape = small_supernet().shape, .architecture_every = 3});
  frazil::Run run(model.spec, OptimizerConfig{}, kSupernetSeed, 4);
  run.transition_to(make_plan(model, {.devices = 2, .replicas = 2}));
  const auto states_now = [&] {
    std::vector<LayerState> states;
    for (const LayerState& state : run.gather_states()) states.push_back(clone(state));
    return states;
  };
  std::vector<LayerState> before = states_now();
  for (Step step = 0; step < 9; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    run.step(step, 0.01, batch_of(model, step));
    std::vector<LayerState> after = states_now();
    const bool is_architecture = (step + 1) % 3 == 0;
    for (std::size_t l = 0; l < before.size(); ++l) {
      const LayerSpec& layer = model.spec.layers[l];
      const std::vector<std::string> moved = list_moved(layer, before[l], after[l]);
      if (!is_cell(layer)) {
        EXPECT_EQ(moved.empty(), is_architecture) << layer.name;
        continue;
      }
      const std::string& architecture = layer.parameters[0].name;
      if (is_architecture) {
        EXPECT_EQ(moved, (std::vector<std::string>{architecture, "m of " + architecture,
                                                   "v of " + architecture}));
        continue;
      }
      const std::size_t drawn = draw_operation(before[l].parameters[0], LayerId{l}, key_of(step));
      const std::string prefix = layer.name + "." + std::string(kCellOperations.at(drawn)) + ".";
      for (const std::string& name : moved) {
        EXPECT_NE(name.find(prefix), std::string::npos) << name;
      }
      const std::size_t expected = prefix.ends_with("zero.") ? 0 : 9 * 3 + 9;
      EXPECT_EQ(moved.size(), expected) << "weights with two moments each, and statistics";
    }
    before = std::move(after);
  }
}

}  // namespace
}  // namespace frazil
