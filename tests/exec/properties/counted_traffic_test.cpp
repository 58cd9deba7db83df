// All that crosses between devices is counted where it is sent: message by message and byte by byte
// it is what the simulator says, for any mask.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "planner/plan/reduction_groups.h"
#include "planner/plan/tied_exchanges.h"
#include "planner/prediction/step_messages.h"
#include "profiles/error.h"
#include "sim/collective_cost.h"
#include "tests/exec/models/locked_models.h"
#include "tests/exec/models/normed_cnn.h"
#include "tests/exec/models/random_forms.h"
#include "tests/exec/models/trainable_checks.h"
#include "tests/exec/support/sent_messages.h"

namespace frazil {
namespace {

using Messages = std::map<std::string, std::int64_t>;  // bytes

std::string name_of(int from, int to, bool backward, int pipeline, int from_stage, int to_stage,
                    int micro_batch) {
  return "device " + std::to_string(from) + " to " + std::to_string(to) +
         (backward ? ", gradient" : ", activation") + " of pipeline " + std::to_string(pipeline) +
         ", stage " + std::to_string(from_stage) + " to " + std::to_string(to_stage) +
         ", micro-batch " + std::to_string(micro_batch);
}

Messages count_messages(const AllSent& sent) {
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

Messages simulate_messages(const LoweredStep& step, const StepProgram& program,
                           const ModelProfile& profile) {
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

// Returns the collectives that the simulator charges, each once.
std::vector<Collective> list_charged(const LoweredStep& step) {
  std::vector<Collective> charged;
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    const TaskLane& lane = step.graph.lanes()[step.graph.lane_of()[task]];
    const Work& work = step.graph.works()[step.graph.work_of()[task]];
    const auto* collective = std::get_if<Collective>(&work);
    if (collective == nullptr || lane.device != collective->devices.front()) continue;
    charged.push_back(*collective);
  }
  return charged;
}

// Shares are whole floats, cut at floor(k E / R).
std::vector<std::int64_t> cut_shares(const Collective& collective) {
  const std::int64_t elements = collective.size.count / 4;
  const auto owners = static_cast<std::int64_t>(collective.devices.size());
  std::vector<std::int64_t> shares;
  for (std::int64_t o = 0; o < owners; ++o) {
    shares.push_back((o + 1) * elements / owners - o * elements / owners);
  }
  return shares;
}

// An owner in mode exact sends every other owner that owner's share of each of its own nodes, then
// the sum of its own share. Shares in mode fast go round the ring twice, and each place sends all
// shares but one each time.
std::vector<Traffic> expect_reduction(const Collective& collective) {
  const std::vector<std::int64_t> shares = cut_shares(collective);
  const std::int64_t elements = collective.size.count / 4;
  const std::size_t owners = shares.size();
  const auto others = static_cast<std::int64_t>(owners) - 1;
  std::vector<Traffic> expected;
  for (std::size_t o = 0; o < owners; ++o) {
    std::int64_t floats = 0;
    if (collective.kind == CollectiveKind::kExactTreeAllReduce) {
      floats = collective.owned[o] * (elements - shares[o]) + others * shares[o];
    } else {
      floats = 2 * elements - shares[(o + 1) % owners] - shares[(o + 2) % owners];
    }
    expected.push_back({2 * others, 4 * floats});
  }
  return expected;
}

// The simulator charges shares of n/R: the same number where R divides the floats, else one that
// differs by less than a float in each share.
void expect_charge(const Collective& collective, const std::vector<Traffic>& sent,
                   const Cluster& cluster, int& exact) {
  const CollectiveCost cost = collective_cost(collective, cluster);
  const auto owners = static_cast<std::int64_t>(collective.devices.size());
  std::int64_t busiest = 0;
  for (const Traffic& of_owner : sent) {
    EXPECT_EQ(of_owner.messages, cost.steps);
    busiest = std::max(busiest, of_owner.bytes);
  }
  if (collective.size.count / 4 % owners == 0) {
    EXPECT_EQ(busiest, cost.sent_by_busiest.count);
    ++exact;
    return;
  }
  std::int64_t nodes = 1;
  for (const int own : collective.owned) nodes = std::max<std::int64_t>(nodes, own);
  const std::int64_t shares = (owners - 1) * (nodes + 1);
  EXPECT_LT(std::abs(busiest - cost.sent_by_busiest.count), 4 * shares);
}

// Compares what layers with several owners send with what the simulator charges. Returns how many
// reductions there are.
int expect_reductions(const AllSent& sent, const LoweredStep& step, const Cluster& cluster,
                      int& exact) {
  DeviceTraffic expected(sent.size());
  int reductions = 0;
  for (const Collective& collective : list_charged(step)) {
    if (collective.kind == CollectiveKind::kAllGather) continue;
    const std::vector<Traffic> of_owners = expect_reduction(collective);
    expect_charge(collective, of_owners, cluster, exact);
    for (std::size_t o = 0; o < of_owners.size(); ++o) {
      expected[collective.devices[o].index()] += of_owners[o];
    }
    ++reductions;
  }
  EXPECT_EQ(count_kinds(sent, {MessageKind::kGradientNodes, MessageKind::kGradientSum}), expected);
  return reductions;
}

// Compares what parameters with several uses send with what the simulator charges, message by
// message. Returns how many exchanges there are.
int expect_tied(const AllSent& sent, const LoweredStep& step, const StepProgram& program,
                const ModelProfile& profile, const Cluster& cluster) {
  const std::vector<TiedExchange> exchanges =
      find_tied_exchanges(program.plan, profile, program.activity);
  std::vector<Collective> gathers;
  for (const Collective& collective : list_charged(step)) {
    if (collective.kind == CollectiveKind::kAllGather) gathers.push_back(collective);
  }
  EXPECT_EQ(gathers.size(), exchanges.size());
  DeviceTraffic expected(sent.size());
  for (std::size_t e = 0; e < gathers.size(); ++e) {
    EXPECT_EQ(gathers[e], exchanges.at(e).collective);
    const std::size_t devices = gathers[e].devices.size();
    const Bytes share = share_among(gathers[e].size, devices);
    EXPECT_EQ(share, profile.tied[exchanges.at(e).tied].bytes);
    Traffic busiest;
    for (std::size_t d = 0; d < devices; ++d) {
      const auto others = static_cast<std::int64_t>(devices) - 1;
      const std::int64_t messages = gathers[e].owned.empty() ? others : gathers[e].owned[d];
      const Traffic own{messages, messages * share.count};
      expected[gathers[e].devices[d].index()] += own;
      if (own.messages > busiest.messages) busiest = own;
    }
    const CollectiveCost cost = collective_cost(gathers[e], cluster);
    EXPECT_GE(cost.steps, busiest.messages);
    EXPECT_EQ(cost.sent_by_busiest.count, busiest.bytes);
  }
  EXPECT_EQ(count_kinds(sent, {MessageKind::kTiedSum}), expected);
  return static_cast<int>(exchanges.size());
}

// A barrier takes no time in the simulator, nor does what it exchanges: the first device that
// updates gets from each other device a row of three doubles for each parameter whose first owner
// that device is, and answers each device with one double.
void expect_norms(const AllSent& sent, const TestModel& model, const StepProgram& program,
                  bool clip) {
  DeviceTraffic expected(sent.size());
  std::set<int> updating;
  for (std::size_t l = 0; clip && l < program.topology.owners.size(); ++l) {
    if (!program.activity.layers[l].weight_gradient) continue;
    for (const LayerOwner& owner : program.topology.owners[l]) updating.insert(owner.device.value);
  }
  for (const int device : updating) {
    const auto place = static_cast<std::size_t>(*updating.begin());
    if (device == *updating.begin()) continue;
    expected[place] += {1, 8};
    expected[static_cast<std::size_t>(device)] += {1, 0};
  }
  std::set<std::string> counted;  // of tied parameters, the first use alone
  for (std::size_t l = 0; l < program.topology.owners.size(); ++l) {
    const int first = program.topology.owners[l].front().device.value;
    for (const ParameterSpec& parameter : model.spec.layers[l].parameters) {
      if (!updating.contains(first) || !program.activity.layers[l].weight_gradient) continue;
      if (!parameter.trainable) continue;
      if (!parameter.tied.empty() && !counted.insert(parameter.tied).second) continue;
      if (first != *updating.begin()) expected[static_cast<std::size_t>(first)] += {0, 24};
    }
  }
  EXPECT_EQ(count_kinds(sent, {MessageKind::kSquaredNorms}), expected);
}

Plan reduce_fast(Plan plan) {
  plan.reduction = ReductionMode::kFast;
  return plan;
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
      {.schedule = ScheduleKind::kZbV, .devices = 2, .chunks = 2, .replicas = 2},
      {.devices = 1, .micro_batches = 7, .replicas = 3},
      {.devices = 2, .shared_stage = 0},
      {.devices = 3, .shared_stage = 1}};
  std::size_t messages = 0;
  int reductions = 0;
  int exact = 0;
  int tied = 0;
  std::vector<TestModel> models{encoder_model(),   decoder_model(),      uneven_mlp_model(),
                                small_cnn_model(), distillation_model(), normed_cnn_model(),
                                small_vgg_model()};
  for (const TestModel& model : locked_models()) models.push_back(model);
  for (const TestModel& model : models) {
    const ModelProfile profile = make_timed_structure(model.spec);
    for (PlanForm form : forms) {
      const int devices = form.all_devices();
      for (int trial = 0; trial < 4; ++trial) {
        form.mask = trial == 0 ? model.mask : random_mask(model, random);
        const bool clip = trial % 2 == 0;
        const bool fast = trial == 3;
        SCOPED_TRACE(model.spec.name + ", " + frazil::name_of(form) + (clip ? ", clipped" : "") +
                     (fast ? ", fast" : ""));
        Plan plan;
        try {
          plan = make_plan(model, form);
        } catch (const InfeasibleError&) {
          continue;  // too few layers
        }
        if (fast) plan = reduce_fast(std::move(plan));
        const StepProgram program = make_program(plan, profile, devices, clip);
        const Cluster cluster = make_linked_cluster(devices);
        const LoweredStep step =
            lower(program.plan, program.schedule, {profile, cluster}, program.activity);
        const AllSent sent = send_step(model, program, devices, clip);
        const Messages counted = count_messages(sent);
        EXPECT_EQ(counted, simulate_messages(step, program, profile));
        messages += counted.size();
        reductions += expect_reductions(sent, step, cluster, exact);
        tied += expect_tied(sent, step, program, profile, cluster);
        expect_norms(sent, model, program, clip);
      }
    }
  }
  EXPECT_GT(messages, 1000U);
  EXPECT_GT(reductions, 50);
  EXPECT_GT(exact, reductions / 2) << "most charges are the bytes sent, to the byte";
  EXPECT_GT(tied, 10);
}

// R owners with aligned shares send 2 (R - 1) times what trains: in mode exact each sends the
// others their shares of its nodes, then its share of the sum; in mode fast shares go round a ring.
TEST(CountedTraffic, OfReductionsFallsByExactlyTheFrozenShare) {
  for (const TestModel& model : {encoder_model(), uneven_mlp_model(), small_cnn_model()}) {
    const ModelProfile profile = make_timed_structure(model.spec);
    for (const int replicas : {2, 4}) {
      for (const bool fast : {false, true}) {
        std::int64_t before = -1;
        std::int64_t frozen = 0;  // bytes of parameters
        for (std::size_t blocks = 0; blocks < model.mask.size(); ++blocks) {
          PlanForm form{.devices = 1, .micro_batches = 4, .replicas = replicas};
          form.mask = model.mask;
          for (std::size_t b = 0; b < blocks; ++b) form.mask[b] = '0';
          SCOPED_TRACE(model.spec.name + ", " + form.mask + (fast ? ", fast" : ""));
          Plan plan = make_plan(model, form);
          if (fast) plan = reduce_fast(std::move(plan));
          const StepProgram program = make_program(plan, profile, replicas, false);
          const std::int64_t bytes =
              count_reductions(send_step(model, program, replicas, false)).bytes;
          std::int64_t trained = 0;
          frozen = 0;
          for (const Layer& layer : profile.layers) {
            (form.mask[layer.block.index()] == '1' ? trained : frozen) += layer.parameters.count;
          }
          EXPECT_EQ(bytes, 2 * (replicas - 1) * trained);
          if (blocks == 0) before = bytes;
          EXPECT_EQ(before - bytes, 2 * (replicas - 1) * frozen);
        }
        EXPECT_GT(frozen, 0);
      }
    }
  }
}

TEST(CountedTraffic, OfReductionsLeavesOutWhatIsNotTrainable) {
  for (const TestModel& model : locked_models()) expect_reductions_of_trainable_alone(model);
}

// A barrier takes no time in the simulator, nor do statistics: each owner of a layer that keeps
// some hands each other owner, in one message, those of its own micro-batches, a mean and a
// variance of each of four channels.
TEST(CountedTraffic, OfStatisticsIsWhatEachOwnerLacks) {
  const TestModel model = normed_cnn_model();
  const ModelProfile profile = make_timed_structure(model.spec);
  const auto count = [&](PlanForm form) {
    const StepProgram program =
        make_program(make_plan(model, form), profile, form.all_devices(), false);
    return count_kinds(send_step(model, program, form.all_devices(), false),
                       {MessageKind::kStatistics});
  };
  constexpr std::int64_t kNormBytes = 2 * 4 * 4;
  constexpr std::int64_t kNorms = 7;
  EXPECT_EQ(count({.devices = 3}), DeviceTraffic(3));
  EXPECT_EQ(count({.replicas = 2}), DeviceTraffic(2, {1, 2 * kNorms * kNormBytes}));
  EXPECT_EQ(count({.micro_batches = 6, .replicas = 3}),
            DeviceTraffic(3, {2, 2 * 2 * kNorms * kNormBytes}));
  // The first of two stages has the stem and two norms of a unit, but the unit is frozen.
  EXPECT_EQ(count({.devices = 2, .cuts = {2}, .replicas = 2, .mask = "101111"}),
            (DeviceTraffic{{1, 2 * kNormBytes},
                           {1, 2 * 4 * kNormBytes},
                           {1, 2 * kNormBytes},
                           {1, 2 * 4 * kNormBytes}}));
}

// Device 1 has the last stage of one pipeline and the first of the other, so that it has both uses
// and lacks none: it serves the two other devices, and nothing else crosses.
TEST(CountedTraffic, OfTiedUsesGoesOnlyToDevicesThatLackOne) {
  const TestModel model = decoder_model();
  const ModelProfile profile = make_timed_structure(model.spec);
  const Cluster cluster = make_linked_cluster(3);
  for (const bool fast : {false, true}) {
    Plan plan = make_plan(model, {.schedule = ScheduleKind::kGpipe, .devices = 2, .replicas = 2});
    for (Stage& stage : plan.pipelines[1].stages) stage.devices.front().value -= 1;
    if (fast) plan = reduce_fast(std::move(plan));
    const StepProgram program = make_program(plan, profile, 3, fast);
    ASSERT_EQ(program.tied.size(), 1U);
    const LoweredStep step =
        lower(program.plan, program.schedule, {profile, cluster}, program.activity);
    const AllSent sent = send_step(model, program, 3, fast);
    EXPECT_EQ(expect_tied(sent, step, program, profile, cluster), 2);
    int exact = 0;
    EXPECT_GT(expect_reductions(sent, step, cluster, exact), 0);
    EXPECT_EQ(count_messages(sent), simulate_messages(step, program, profile));
    const DeviceTraffic tied = count_kinds(sent, {MessageKind::kTiedSum});
    EXPECT_EQ(tied[0], Traffic{});
    EXPECT_EQ(tied[1], (Traffic{2, 2 * profile.tied[0].bytes.count}));
    EXPECT_EQ(tied[2], Traffic{});
  }
}

// Each device has both uses already, one in each direction.
TEST(CountedTraffic, OfTiedUsesThatEveryDeviceHoldsIsNone) {
  const TestModel model = decoder_model();
  const ModelProfile profile = make_timed_structure(model.spec);
  const Plan plan = make_plan(model, {.schedule = ScheduleKind::kChimera, .devices = 2});
  const StepProgram program = make_program(plan, profile, 2, false);
  ASSERT_EQ(program.tied.size(), 1U);
  EXPECT_TRUE(find_tied_exchanges(plan, profile, program.activity).empty());
  for (const Traffic& traffic :
       count_kinds(send_step(model, program, 2, false), {MessageKind::kTiedSum})) {
    EXPECT_EQ(traffic, Traffic{});
  }
}

}  // namespace
}  // namespace frazil
