// A run keeps nothing that the mask makes needless: the stash is to the byte what can be added up
// layer by layer, and what the simulator charges.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "exec/measuring/allocation_meter.h"
#include "exec/measuring/stash_meter.h"
#include "exec/run/stages/stage_runner.h"
#include "planner/prediction/simulate_plan.h"
#include "tests/exec/models/random_forms.h"
#include "tests/exec/support/measured_memories.h"

namespace frazil {
namespace {

constexpr std::uint64_t kStashSeed = 7;

DeviceState make_state(const TestModel& model) {
  DeviceState state;
  for (std::size_t l = 0; l < model.spec.layers.size(); ++l) {
    state[LayerId{l}] = make_initial_state(model.spec, LayerId{l}, kStashSeed);
  }
  return state;
}

// Measures what a stage of all layers keeps of one micro-batch, less the samples.
std::int64_t measure_kept(const TestModel& model, const Activity& activity, DeviceState& state,
                          const Samples& samples) {
  Recorder recorder(DeviceId{0}, SteadyTime{});
  const Measurement measurement;
  StageRunner runner({model.spec, activity, state, recorder, measurement},
                     {.layers = {{LayerId{0}, LayerId{model.layers() - 1}}}},
                     [](LayerId, MicroBatchId, const Tensors&) {});
  const AllocationMeter meter;
  runner.forward(MicroBatchId{0}, {.samples = &samples, .key = {}}, {});
  const std::int64_t kept = meter.live_bytes();
  if (runner.in_flight() > 0) runner.backward(MicroBatchId{0}, {});
  EXPECT_EQ(meter.live_bytes(), 0) << "after the backward nothing is left";
  return kept;
}

// The stashes of layers that train, that are frozen and hand gradients on, and that train behind
// frozen ones alone, so that nobody wants the gradients of their inputs; and the inputs that layers
// read.
struct Stashes {
  std::vector<Bytes> training;
  std::vector<Bytes> frozen;
  std::vector<Bytes> alone;
  std::vector<Tensors> inputs;

  Bytes of(LayerId layer, const LayerActivity& activity) const {
    if (!activity.weight_gradient) return frozen[layer.index()];
    return (activity.input_gradient ? training : alone)[layer.index()];
  }
};

Bytes measure_alone(const TestModel& model, LayerId layer, const DeviceState& state,
                    const Tensors& inputs, const Samples& samples) {
  const LayerGraph::Call call{
      .inputs = inputs, .carries = std::vector<bool>(inputs.size(), false), .key = {}};
  const AllocationMeter meter;
  LayerGraph graph(
      model.spec, layer, state.at(layer).parameters,
      {.active = true, .input_gradient = false, .weight_gradient = true, .trains = true}, call);
  const Tensors outputs = graph.take_outputs();
  if (model.spec.has_loss(layer)) {
    graph.add_loss(model.spec.layers[layer.index()].loss(outputs, samples.labels));
  }
  return Bytes{count_stash(meter, inputs, outputs)};
}

Stashes find_stashes(const TestModel& model, const DeviceState& state, const Samples& samples) {
  std::vector<const Tensors*> parameters;
  for (const auto& [layer, own] : state) parameters.push_back(&own.parameters);
  const std::vector<Tensors> outputs = forward_model(model.spec, parameters, samples.inputs);
  Stashes stashes{measure_stashes(model.spec, state, samples),
                  measure_stashes(model.spec, state, samples, /*frozen=*/true),
                  {},
                  {}};
  for (const auto& [layer, own] : state) {
    stashes.inputs.push_back(read_inputs(model.spec, layer, outputs, samples.inputs));
    const bool trains = !own.parameters.empty();
    stashes.alone.push_back(
        trains ? measure_alone(model, layer, state, stashes.inputs.back(), samples) : Bytes{});
  }
  return stashes;
}

// A stash has the layer's inputs in it. There is one copy of what several layers read, and the
// samples were there before.
std::int64_t add_up(const Stashes& stashes, const Activity& activity, const Samples& samples) {
  std::int64_t sum = 0;
  std::set<const void*> counted;  // storages
  for (const at::Tensor& input : samples.inputs) counted.insert(input.storage().data());
  for (std::size_t l = 0; l < stashes.inputs.size(); ++l) {
    if (!activity.backward(LayerId{l})) continue;
    sum += stashes.of(LayerId{l}, activity.layers[l]).count;
    for (const at::Tensor& input : stashes.inputs[l]) {
      const bool is_new = counted.insert(input.storage().data()).second;
      if (!is_new) sum -= static_cast<std::int64_t>(input.nbytes());
    }
  }
  return sum;
}

TEST(NeededStash, OfAnyMaskIsThatOfTheLayersWithABackward) {
  const unsigned seed = 20261125;
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomForms random(seed);
  for (const TestModel& model : models_with_gaps()) {
    const ModelProfile structure = make_structure(model.spec, 2);
    const Samples samples = model.samples({.seed = 1, .micro_batches = 1}).front();
    DeviceState state = make_state(model);
    const Stashes stashes = find_stashes(model, state, samples);
    std::vector<std::string> masks;
    for (std::size_t frozen = 0; frozen < model.mask.size(); ++frozen) {
      masks.push_back(model.mask);
      std::fill_n(masks.back().begin(), frozen, '0');
    }
    for (int draw = 0; draw < 50; ++draw) masks.push_back(random.mask(model));
    for (const std::string& mask : masks) {
      SCOPED_TRACE(model.spec.name + " " + mask);
      const Activity activity = find_activity(structure, FreezeMask::parse(mask, "test", 0));
      for (auto& [layer, own] : state) set_active(own, activity.layers[layer.index()].active);
      EXPECT_EQ(measure_kept(model, activity, state, samples), add_up(stashes, activity, samples));
    }
  }
}

// Actions of a device follow each other in its list, so changes in list order are those in time.
std::vector<std::int64_t> find_most_stashed(const TaskGraph& graph, int devices) {
  std::vector<std::int64_t> now(static_cast<std::size_t>(devices));
  std::vector<std::int64_t> most = now;
  for (const MemoryChange& change : graph.memory_changes()) {
    if (change.kind != MemoryKind::kStash) continue;
    const std::size_t d = change.device.index();
    now[d] += change.delta;
    most[d] = std::max(most[d], now[d]);
  }
  return most;
}

TEST(NeededStash, IsTheSimulatedOneUnderRandomInteriorMasksToTheByte) {
  const unsigned seed = 20261126;
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomForms random(seed);
  std::vector<TestModel> models = models_with_gaps();
  models.push_back(decoder_model());
  std::vector<ModelProfile> profiles;
  for (const TestModel& model : models) {
    profiles.push_back(make_measured_profile(
        model.spec, {}, model.samples({.seed = 1, .micro_batches = 1}).front()));
  }
  std::map<ScheduleKind, int> schedules;
  std::int64_t kept = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t m = static_cast<std::size_t>(trial) % models.size();
    const TestModel& model = models[m];
    const PlanForm form = random.form(model, random.mask(model));
    SCOPED_TRACE(model.spec.name + ", " + name_of(form));
    const int devices = form.all_devices();
    const Plan plan = make_plan(model, form);
    const Cluster cluster = make_linked_cluster(devices);
    const SimulatedStep step = simulate_step(plan, {profiles[m], cluster});
    frazil::Run run(model.spec, momentum_sgd(), kStashSeed, devices, {.order = form.order});
    run.measure({.memory = true});
    run.transition_to(plan);
    const StepResult result =
        run.step(0, 1e-2, model.samples({.seed = 1, .micro_batches = form.micro_batches}));
    std::vector<std::int64_t> measured;
    for (const MeasuredMemory& memory : result.memory) {
      measured.push_back(held(memory, MemoryKind::kStash));
      kept += measured.back();
    }
    EXPECT_EQ(measured, find_most_stashed(step.lowered.graph, devices));
    ++schedules[form.schedule];
  }
  EXPECT_GT(kept, 0);
  EXPECT_GE(schedules.size(), 15U) << "most schedules took part";
}

}  // namespace
}  // namespace frazil
