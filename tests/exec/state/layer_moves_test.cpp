#include "exec/state/layer_moves.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

#include "exec/communication/in_process_communicator.h"
#include "exec/state/state_memory.h"
#include "planner/transitions/transition_cost.h"
#include "tests/exec/support/moved_layers.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr int kDevices = 4;

// Layer l holds l + 1 values of l, a moment of each kind, and has been updated l times.
LayerState make_state(int layer) {
  const auto value = static_cast<double>(layer);
  LayerState state;
  state.parameters = {at::full({layer + 1}, value, at::kFloat)};
  state.first_moment = {at::full({layer + 1}, value + 100, at::kFloat)};
  state.second_moment = {at::full({layer + 1}, value + 200, at::kFloat)};
  state.updates = layer;
  return state;
}
Bytes state_bytes(int layer) { return Bytes{3 * 4 * (layer + 1)}; }

// Puts everything on device 0.
std::vector<DeviceState> states_on_one() {
  std::vector<DeviceState> states(kDevices);
  for (int l = 0; l < kSmallLayers; ++l) states[0][LayerId{l}] = make_state(l);
  return states;
}

bool is_state_of(const LayerState& state, int layer) {
  const LayerState expected = make_state(layer);
  return at::equal(state.parameters.at(0), expected.parameters[0]) &&
         at::equal(state.first_moment.at(0), expected.first_moment[0]) &&
         at::equal(state.second_moment.at(0), expected.second_moment[0]) && state.updates == layer;
}

const void* memory_of(const LayerState& state) { return state.parameters.at(0).const_data_ptr(); }

Plan plan_of(const PlanShape& shape) {
  return make_small_plan(make_structure(make_vit(small_config()), 2), shape);
}

PlanShape pipelines(const std::vector<std::vector<int>>& cuts) {
  PlanShape shape;
  shape.cuts = cuts;
  shape.owned.assign(cuts.size(), 0);
  shape.owned[0] = shape.micro_batches;
  return shape;
}

// Returns the layers by device, from the cuts alone.
std::vector<std::set<int>> layers_by_device(const std::vector<std::vector<int>>& cuts) {
  std::vector<std::set<int>> held(kDevices);
  std::size_t device = 0;
  for (const std::vector<int>& pipeline : cuts) {
    std::size_t next = 0;
    for (int l = 0; l < kSmallLayers; ++l) {
      if (next < pipeline.size() && pipeline[next] == l) ++next;
      held[device + next].insert(l);
    }
    device += pipeline.size() + 1;
  }
  return held;
}

void expect_held(const std::vector<DeviceState>& states, const std::vector<std::set<int>>& held) {
  std::set<const void*> memories;
  for (std::size_t d = 0; d < states.size(); ++d) {
    std::set<int> layers;
    for (const auto& [layer, state] : states[d]) {
      layers.insert(layer.value);
      EXPECT_TRUE(is_state_of(state, layer.value)) << "layer " << layer.value << ", device " << d;
      EXPECT_TRUE(memories.insert(memory_of(state)).second) << "shared memory on device " << d;
    }
    EXPECT_EQ(layers, held[d]) << "device " << d;
  }
}

TEST(MoveLayers, HandsOverWhatTheOldHolderGivesUp) {
  std::vector<DeviceState> states = states_on_one();
  const void* memory = memory_of(states[0].at(LayerId{6}));
  const MoveReport report = move_layers(states, plan_of(pipelines({{5}})), kSmallLayers);
  EXPECT_EQ(report.layers_handed_over, 3);
  EXPECT_EQ(report.layers_copied, 0);
  EXPECT_EQ(report.moved, state_bytes(5) + state_bytes(6) + state_bytes(7));
  EXPECT_EQ(memory_of(states[1].at(LayerId{6})), memory);
  expect_held(states, layers_by_device({{5}}));
}

TEST(MoveLayers, CopiesForANewReplica) {
  std::vector<DeviceState> states = states_on_one();
  const void* memory = memory_of(states[0].at(LayerId{6}));
  const MoveReport report = move_layers(states, plan_of(pipelines({{}, {5}})), kSmallLayers);
  EXPECT_EQ(report.layers_handed_over, 0);
  EXPECT_EQ(report.layers_copied, kSmallLayers);
  EXPECT_EQ(memory_of(states[0].at(LayerId{6})), memory);
  EXPECT_NE(memory_of(states[2].at(LayerId{6})), memory);
  expect_held(states, layers_by_device({{}, {5}}));
}

TEST(MoveLayers, MovesNothingThatStays) {
  std::vector<DeviceState> states = states_on_one();
  (void)move_layers(states, plan_of(pipelines({{2, 5}})), kSmallLayers);
  const MoveReport again = move_layers(states, plan_of(pipelines({{2, 5}})), kSmallLayers);
  EXPECT_EQ(again.moved, Bytes{0});
  // A replica that goes away leaves nothing behind and moves nothing.
  (void)move_layers(states, plan_of(pipelines({{}, {}})), kSmallLayers);
  const MoveReport fewer = move_layers(states, plan_of(pipelines({{}})), kSmallLayers);
  EXPECT_EQ(fewer.layers_handed_over + fewer.layers_copied, 0);
  EXPECT_EQ(fewer.moved, Bytes{0});
  expect_held(states, layers_by_device({{}}));
}

TEST(MoveLayers, LeavesLeavesThatTrain) {
  std::vector<DeviceState> states = states_on_one();
  (void)move_layers(states, plan_of(pipelines({{}, {3}})), kSmallLayers);
  for (const DeviceState& state : states) {
    for (const auto& [layer, own] : state) {
      EXPECT_TRUE(own.parameters[0].requires_grad()) << "layer " << layer.value;
      EXPECT_TRUE(own.parameters[0].is_leaf()) << "layer " << layer.value;
    }
  }
}

TEST(MoveLayers, LeavesExactlyWhatEachPlanOfALongSequenceSays) {
  constexpr std::uint64_t kSeed = 9;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 engine(kSeed);
  const std::vector<std::vector<std::vector<int>>> shapes = {{{}},
                                                             {{4}},
                                                             {{1}},
                                                             {{7}},
                                                             {{2, 5}},
                                                             {{1, 2, 3}},
                                                             {{}, {}},
                                                             {{3}, {6}},
                                                             {{}, {4}},
                                                             {{5}, {}},
                                                             {{2, 6}, {}},
                                                             {{}, {}, {}},
                                                             {{}, {}, {}, {}},
                                                             {{}, {}, {1}}};
  std::vector<DeviceState> states = states_on_one();
  for (int round = 0; round < 100; ++round) {
    const auto& cuts = shapes[engine() % shapes.size()];
    const std::vector<DeviceState> before = states;
    const MoveReport report = move_layers(states, plan_of(pipelines(cuts)), kSmallLayers);
    const std::vector<std::set<int>> held = layers_by_device(cuts);
    expect_held(states, held);
    std::set<const void*> memories;
    for (const DeviceState& state : before) {
      for (const auto& [layer, own] : state) memories.insert(memory_of(own));
    }
    int taken = 0;
    Bytes moved;
    Bytes copied;
    for (std::size_t d = 0; d < held.size(); ++d) {
      for (const int layer : held[d]) {
        if (before[d].contains(LayerId{layer})) continue;
        ++taken;
        moved += state_bytes(layer);
        if (!memories.contains(memory_of(states[d].at(LayerId{layer})))) {
          copied += state_bytes(layer);
        }
      }
    }
    EXPECT_EQ(report.layers_handed_over + report.layers_copied, taken);
    EXPECT_EQ(report.moved, moved);
    EXPECT_EQ(report.copied, copied);
    if (HasFailure()) return;
  }
}

// The planner says how many bytes a transition moves; a step comes first, so that moments are
// there.
TEST(MoveLayers, MovesTheBytesThatThePlannerPredicts) {
  const ModelSpec model = make_vit(small_config());
  const Cluster cluster =
      make_uniform_cluster(kDevices, Bytes{1 << 30}, {Duration{1000}, BytesPerSecond{1'000'000}});
  frazil::Run run(model, {}, 7, kDevices);
  const std::vector<PlanShape> shapes = {
      {.cuts = {{}}, .owned = {6}},
      {.cuts = {{4}}, .owned = {6}},
      {.cuts = {{2, 4, 6}}, .owned = {6}, .mask = "01111"},
      {.cuts = {{3}, {5}}, .owned = {3, 3}, .mask = "00111"},
      {.cuts = {{}, {}, {}, {}}, .owned = {2, 2, 1, 1}, .mask = "00011"},
      {.cuts = {{4}}, .owned = {6}, .mask = "11111"}};
  run.transition_to(make_small_plan(run.structure(), shapes.back()));
  // A byte that is copied takes a nanosecond, whoever copies.
  const TransitionOverhead one_memory{
      .memory = OneMemory{.copied_alone = BytesPerSecond{1'000'000'000},
                          .copied_together = BytesPerSecond{1'000'000'000},
                          .hashed = {}}};
  int moves = 0;
  int copies = 0;
  int lighter = 0;
  for (const PlanShape& shape : shapes) {
    run.step(0, 1e-2, small_micro_batches(0, 6));
    const Plan before = run.plan();
    const Plan next = make_small_plan(run.structure(), shape);
    const TransitionCost predicted = price_transition(before, next, {run.structure(), cluster},
                                                      find_activity(run.structure(), before.mask));
    const TransitionCost copied =
        price_transition(before, next, {run.structure(), cluster},
                         find_activity(run.structure(), before.mask), one_memory);
    const MoveReport report = run.transition_to(next).move;
    EXPECT_EQ(report.moved, copied.moved) << summarize(next);
    // Moves between memories take along the moments of what freezes just then.
    const bool freezes = next.mask.frozen_count() > before.mask.frozen_count();
    if (!freezes) {
      EXPECT_EQ(report.moved, predicted.moved) << summarize(next);
    }
    EXPECT_LE(report.moved, predicted.moved) << summarize(next);
    lighter += report.moved < predicted.moved ? 1 : 0;
    EXPECT_EQ(report.copied.count, copied.move.count()) << summarize(next);
    moves += predicted.moved.count > 0 ? 1 : 0;
    copies += report.copied.count > 0 ? 1 : 0;
  }
  EXPECT_EQ(lighter, 2) << "where a layer freezes that goes elsewhere";
  EXPECT_EQ(copies, 2) << "from one holder to several";
  EXPECT_EQ(moves, 5) << "replicas that hold everything only give up";
}

// Makes layers of 3 MiB, so that copies have memory of their own.
std::vector<DeviceState> large_states() {
  std::vector<DeviceState> states(kDevices);
  for (int l = 0; l < kSmallLayers; ++l) {
    const auto some = [] { return Tensors{at::randn({1 << 18}), at::randn({7})}; };
    states[0][LayerId{l}] = {some(), some(), some(), l};
  }
  return states;
}

TEST(MoveLayers, GivesTheSameBits) {
  std::vector<DeviceState> states = large_states();
  const std::uint64_t hash = hash_states(first_holders(states, kSmallLayers));
  for (const auto& cuts : std::vector<std::vector<std::vector<int>>>{
           {{4}}, {{}, {}, {}, {}}, {{2, 5}}, {{}, {3}}, {{6}, {}}, {{1, 2, 3}}, {{}}}) {
    (void)move_layers(states, plan_of(pipelines(cuts)), kSmallLayers);
    const std::vector<std::set<int>> held = layers_by_device(cuts);
    for (std::size_t d = 0; d < held.size(); ++d) {
      EXPECT_EQ(states[d].size(), held[d].size());
      for (const int layer : held[d]) ASSERT_TRUE(states[d].contains(LayerId{layer}));
    }
    for (const DeviceState& state : states) {
      if (state.size() != kSmallLayers) continue;
      std::vector<const LayerState*> replica;
      for (const auto& [layer, own] : state) replica.push_back(&own);
      EXPECT_EQ(hash_states(replica), hash);
    }
    EXPECT_EQ(hash_states(first_holders(states, kSmallLayers)), hash);
  }
}

TEST(MoveLayers, ChangesNothingBeforeItIsAdopted) {
  const std::vector<DeviceState> states = states_on_one();
  const LayerMoves moves =
      find_moves(Holdings(kSmallLayers, {DeviceId{0}}), Holdings(kSmallLayers, {DeviceId{1}}));
  auto world = make_in_process_communicators(kDevices);
  const std::vector<bool> freezes(kSmallLayers, false);
  const auto exchange = [&](int device) {
    return exchange_layers({.moves = moves,
                            .device = DeviceId{device},
                            .state = states[static_cast<std::size_t>(device)],
                            .freezes = freezes,
                            .is_here = [](DeviceId) { return true; },
                            .memory = {}},
                           *world[static_cast<std::size_t>(device)], 1);
  };
  EXPECT_TRUE(exchange(0).layers.empty());
  const TakenLayers taken = exchange(1);
  EXPECT_EQ(taken.layers.size(), kSmallLayers);
  EXPECT_EQ(states[0].size(), kSmallLayers) << "the giver keeps what it hands over until it adopts";
  for (const auto& [layer, state] : taken.layers) EXPECT_TRUE(is_state_of(state, layer.value));
  world[2]->abort("rank 2 is lost");
  EXPECT_THROW((void)exchange(0), PeerLost);
  EXPECT_EQ(states[0].size(), kSmallLayers);
  EXPECT_TRUE(states[1].empty());
}

TEST(MoveLayers, LeavesTheMomentsOfWhatFreezesBehind) {
  const LayerState state = make_state(3);
  const LayerState frozen = unpack(pack(state, /*freezes=*/true), {});
  EXPECT_TRUE(at::equal(frozen.parameters.at(0), state.parameters[0]));
  EXPECT_TRUE(frozen.first_moment.empty() && frozen.second_moment.empty());
  EXPECT_EQ(frozen.updates, 0);
  EXPECT_TRUE(is_state_of(unpack(pack(state, /*freezes=*/false), {}), 3));
}

TEST(FindMoves, TakesFromTheOwnProcessWhereItCan) {
  const std::vector<int> process_of{0, 0, 1, 1};
  // Device 3 copies from its neighbour, not from device 0.
  const LayerMoves grown = find_moves({{DeviceId{0}, DeviceId{2}}},
                                      {{DeviceId{0}, DeviceId{2}, DeviceId{3}}}, process_of);
  EXPECT_EQ(grown.moves, (std::vector<LayerMove>{{LayerId{0}, DeviceId{2}, DeviceId{3}, true}}));
  EXPECT_TRUE(grown.given_up.empty());
  // Each process hands over to itself.
  const LayerMoves moved =
      find_moves({{DeviceId{0}, DeviceId{2}}}, {{DeviceId{1}, DeviceId{3}}}, process_of);
  EXPECT_EQ(moved.moves, (std::vector<LayerMove>{{LayerId{0}, DeviceId{2}, DeviceId{3}},
                                                 {LayerId{0}, DeviceId{0}, DeviceId{1}}}));
  EXPECT_EQ(moved.given_up.size(), 2U);
}

TEST(MoveLayers, NeedsEveryLayerSomewhere) {
  std::vector<DeviceState> states = states_on_one();
  states[0].erase(LayerId{3});
  EXPECT_THROW((void)move_layers(states, plan_of(pipelines({{4}})), kSmallLayers),
               std::logic_error);
  EXPECT_THROW((void)first_holders(states, kSmallLayers), std::logic_error);
}

TEST(FirstHolders, AreOfTheLowestDevices) {
  std::vector<DeviceState> states(3);
  states[2][LayerId{0}] = make_state(0);
  states[1][LayerId{0}] = make_state(0);
  states[2][LayerId{1}] = make_state(1);
  EXPECT_EQ(first_holders(states, 2),
            (std::vector<const LayerState*>{&states[1].at(LayerId{0}), &states[2].at(LayerId{1})}));
}

}  // namespace
}  // namespace frazil
