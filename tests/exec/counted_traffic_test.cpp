// What crosses between devices, counted where it is sent: message by message and byte by byte what
// the simulator says, for any mask.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "exec/executor.h"
#include "exec/in_process_communicator.h"
#include "exec/workers.h"
#include "planner/reduction_groups.h"
#include "planner/step_messages.h"
#include "profiles/error.h"
#include "sim/collective_cost.h"
#include "tests/exec/models/model_plans.h"

namespace frazil {
namespace {

constexpr std::uint64_t kSeed = 7;

struct Sent {
  int to = 0;
  Tag tag;
  std::int64_t bytes = 0;
};

// Notes what its rank hands over, and hands it on.
class CountingCommunicator final : public Communicator {
 public:
  explicit CountingCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void send(int peer, const Tag& tag, Tensors tensors) override {
    Sent noted{peer, tag, 0};
    for (const at::Tensor& tensor : tensors) {
      noted.bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
    sent.push_back(noted);
    inner_->send(peer, tag, std::move(tensors));
  }
  Tensors receive(int peer, const Tag& tag) override { return inner_->receive(peer, tag); }
  void barrier() override { inner_->barrier(); }
  void abort(const std::string& reason) override { inner_->abort(reason); }
  void finish() override { inner_->finish(); }
  void leave() override { inner_->leave(); }

  std::vector<Sent> sent;

 private:
  std::unique_ptr<Communicator> inner_;
};

std::vector<DeviceState> make_states(const ModelSpec& model, const StepProgram& program,
                                     int devices) {
  std::vector<DeviceState> states(static_cast<std::size_t>(devices));
  for (std::size_t l = 0; l < program.owners.size(); ++l) {
    for (const LayerOwner& owner : program.owners[l]) {
      LayerState& state = states[owner.device.index()][LayerId{l}];
      state = make_initial_state(model, LayerId{l}, kSeed);
      set_active(state, program.activity.layers[l].active);
    }
  }
  return states;
}

// By rank: what one step sends.
std::vector<std::vector<Sent>> run_step(const TestModel& model, const StepProgram& program,
                                        int devices) {
  const OptimizerConfig optimizer = momentum_sgd();
  const Measurement measurement;
  std::vector<DeviceState> states = make_states(model.spec, program, devices);
  std::vector<std::unique_ptr<CountingCommunicator>> communicators;
  for (auto& inner : make_in_process_communicators(devices, {.check_order = false})) {
    communicators.push_back(std::make_unique<CountingCommunicator>(std::move(inner)));
  }
  std::vector<Recorder> recorders;
  std::vector<std::unique_ptr<Executor>> executors;
  for (int d = 0; d < devices; ++d) recorders.emplace_back(DeviceId{d}, SteadyTime{});
  for (std::size_t d = 0; d < states.size(); ++d) {
    executors.push_back(std::make_unique<Executor>(model.spec, optimizer, program, DeviceId{d},
                                                   states[d], *communicators[d], recorders[d],
                                                   measurement));
  }
  const std::vector<Samples> micro_batches =
      model.samples({.seed = 1, .micro_batches = program.plan.micro_batches()});
  const StepInput input{0, kSeed, 1e-2, &micro_batches, program.plan.batch_size};
  Workers workers(devices);
  workers.run([&](DeviceId device) { executors[device.index()]->run_step(input); },
              [&](const std::string& reason) { communicators[0]->abort(reason); });
  std::vector<std::vector<Sent>> sent;
  for (const auto& communicator : communicators) sent.push_back(communicator->sent);
  return sent;
}

using Messages = std::map<std::string, std::int64_t>;  // bytes

std::string name_of(int from, int to, bool backward, int pipeline, int from_stage, int to_stage,
                    int micro_batch) {
  return "device " + std::to_string(from) + " to " + std::to_string(to) +
         (backward ? ", gradient" : ", activation") + " of pipeline " + std::to_string(pipeline) +
         ", stage " + std::to_string(from_stage) + " to " + std::to_string(to_stage) +
         ", micro-batch " + std::to_string(micro_batch);
}

Messages count_messages(const std::vector<std::vector<Sent>>& sent) {
  Messages counted;
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    for (const Sent& each : sent[rank]) {
      const bool backward = each.tag.kind == MessageKind::kActivationGradient;
      if (!backward && each.tag.kind != MessageKind::kActivation) continue;
      const std::string name = name_of(static_cast<int>(rank), each.to, backward, each.tag.pipeline,
                                       each.tag.from, each.tag.stage, each.tag.index);
      EXPECT_TRUE(counted.emplace(name, each.bytes).second) << name << " is sent twice";
    }
  }
  return counted;
}

Messages simulate_messages(const StepProgram& program, const ModelProfile& profile, int devices) {
  const LoweredStep step = lower(program.plan, program.schedule, profile,
                                 make_linked_cluster(devices), program.activity);
  Messages simulated;
  for (const StepMessage& each :
       find_step_messages(step, program.plan, profile, program.activity)) {
    if (each.from == each.to) continue;
    const Message& message = each.message;
    simulated[name_of(each.from.value, each.to.value, message.backward, message.pipeline.value,
                      message.from.value, message.to.value, message.micro_batch.value)] =
        each.size.count;
  }
  return simulated;
}

// Bytes that each device sends to add up the gradients of layers it shares.
std::vector<std::int64_t> count_reduced(const std::vector<std::vector<Sent>>& sent) {
  std::vector<std::int64_t> bytes(sent.size());
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    for (const Sent& each : sent[rank]) {
      if (each.tag.kind != MessageKind::kGradientNodes &&
          each.tag.kind != MessageKind::kGradientSum) {
        continue;
      }
      bytes[rank] += each.bytes;
    }
  }
  return bytes;
}

// Of each run of neighbouring layers: what is cut into shares at once.
std::vector<std::int64_t> count_elements(const ReductionGroup& group, const ModelProfile& profile) {
  std::vector<std::int64_t> runs;
  for (std::size_t i = 0; i < group.layers.size(); ++i) {
    const bool follows = i > 0 && group.layers[i].value == group.layers[i - 1].value + 1;
    if (!follows) runs.push_back(0);
    runs.back() += profile.layers[group.layers[i].index()].parameters.count / 4;
  }
  return runs;
}

// The same by the formula: to each other owner its share of every own node, then to all the sum of
// the own share. Shares are whole floats, cut at floor(k E / R).
std::vector<std::int64_t> expect_reduced(const std::vector<ReductionGroup>& groups,
                                         const ModelProfile& profile, int devices) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(devices));
  for (const ReductionGroup& group : groups) {
    const auto owners = static_cast<std::int64_t>(group.collective.devices.size());
    for (const std::int64_t elements : count_elements(group, profile)) {
      for (std::int64_t o = 0; o < owners; ++o) {
        const std::int64_t share = (o + 1) * elements / owners - o * elements / owners;
        const auto nodes =
            static_cast<std::int64_t>(group.nodes[static_cast<std::size_t>(o)].size());
        bytes[group.collective.devices[static_cast<std::size_t>(o)].index()] +=
            4 * (nodes * (elements - share) + (owners - 1) * share);
      }
    }
  }
  return bytes;
}

// What the simulator charges is of shares rounded up to whole bytes.
void expect_simulated_reductions(const std::vector<ReductionGroup>& groups,
                                 const ModelProfile& profile, const Cluster& cluster, int devices) {
  for (const ReductionGroup& group : groups) {
    const std::vector<std::int64_t> sent = expect_reduced({group}, profile, devices);
    const std::int64_t busiest = *std::max_element(sent.begin(), sent.end());
    std::size_t most_nodes = 0;
    for (const auto& nodes : group.nodes) most_nodes = std::max(most_nodes, nodes.size());
    const auto rounding =
        static_cast<std::int64_t>(4 * group.layers.size() * group.nodes.size() * (most_nodes + 1));
    const Bytes charged = collective_cost(group.collective, cluster).sent_by_busiest;
    EXPECT_NEAR(static_cast<double>(charged.count), static_cast<double>(busiest),
                static_cast<double>(rounding));
  }
}

std::string random_mask(const TestModel& model, std::mt19937& random) {
  std::string mask = model.mask;
  for (std::size_t b = 0; b + 1 < mask.size(); ++b) {
    if (random() % 2 == 0) mask[b] = '0';
  }
  return mask;
}

TEST(CountedTraffic, IsWhatTheSimulatorSendsForAnyMask) {
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<PlanForm> forms = {
      {.schedule = ScheduleKind::kGpipe, .devices = 3, .micro_batches = 5, .cuts = {1, 4}},
      {.devices = 3},
      {.schedule = ScheduleKind::kZbH1, .devices = 2},
      {.schedule = ScheduleKind::kZbV, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kInterleaved, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kChimera, .devices = 2},
      {.devices = 2, .micro_batches = 6, .cuts = {3}, .replicas = 2},
      {.devices = 1, .micro_batches = 7, .replicas = 3},
      {.devices = 3, .shared_stage = 1}};
  std::size_t messages = 0;
  std::size_t reductions = 0;
  for (const TestModel& model : {encoder_model(), decoder_model(), uneven_mlp_model(),
                                 small_cnn_model(), distillation_model()}) {
    const ModelProfile profile = make_timed_structure(model.spec);
    for (PlanForm form : forms) {
      const int devices = form.all_devices();
      for (int trial = 0; trial < 4; ++trial) {
        form.mask = trial == 0 ? model.mask : random_mask(model, random);
        SCOPED_TRACE(model.spec.name + ", " + frazil::name_of(form) + ", mask " + form.mask);
        Plan plan;
        try {
          plan = make_plan(model, form);
        } catch (const InfeasibleError&) {
          continue;  // too few layers
        }
        const StepProgram program = make_program(plan, profile, devices, false);
        const std::vector<std::vector<Sent>> sent = run_step(model, program, devices);
        const Messages counted = count_messages(sent);
        EXPECT_EQ(counted, simulate_messages(program, profile, devices));
        const std::vector<ReductionGroup> groups =
            find_reduction_groups(program.plan, profile, program.activity);
        EXPECT_EQ(count_reduced(sent), expect_reduced(groups, profile, devices));
        expect_simulated_reductions(groups, profile, make_linked_cluster(devices), devices);
        messages += counted.size();
        reductions += groups.size();
      }
    }
  }
  EXPECT_GT(messages, 1000U);
  EXPECT_GT(reductions, 50U);
}

}  // namespace
}  // namespace frazil
