#include "exec/program/step_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

const ModelProfile& structure() {
  static const ModelProfile profile = make_structure(make_vit(small_config()), 2);
  return profile;
}

Plan two_stages() { return make_small_plan(structure(), {.cuts = {{4}}}); }

std::string refusal(const Plan& plan, const ModelProfile& profile = structure()) {
  try {
    (void)make_program(plan, profile, 2, false);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(StepProgram, RefusesTheLatestAndPredictedWeights) {
  for (const WeightVersions versions : {WeightVersions::kLatest, WeightVersions::kPredicted}) {
    Plan plan = two_stages();
    plan.versions = versions;
    EXPECT_EQ(refusal(plan), "the executor runs the weight versions sync, stash and 2bw so far");
  }
}

TEST(StepProgram, RefusesACachedPrefixBeyondTheFirstStage) {
  Plan plan = two_stages();
  plan.cache_frozen_prefix = true;
  plan.mask = FreezeMask::parse("00111", "test", 0);
  EXPECT_EQ(refusal(plan), "nothing was thrown");
  plan.mask = FreezeMask::parse("00011", "test", 0);
  EXPECT_EQ(refusal(plan),
            "the cached frozen prefix, layers 0-4, does not lie in the first stage of pipeline 0 "
            "alone: stage 1 holds some of it");
}

TEST(StepProgram, RefusesToOffload) {
  Plan plan = two_stages();
  plan.pipelines[0].stages[1].memory = MemoryPolicy::kOffload;
  EXPECT_EQ(refusal(plan), "the executor does not run the memory policy offload yet");
}

TEST(StepProgram, RefusesToRecomputeWithWeightVersions) {
  Plan plan = two_stages();
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream};
  plan.versions = WeightVersions::kStash;
  plan.pipelines[0].stages[0].memory = MemoryPolicy::kRecompute;
  EXPECT_EQ(refusal(plan), "the executor does not recompute with weight versions yet");
}

TEST(StepProgram, LinksStagesByTheEdgesBetweenThem) {
  ModelProfile skipping = structure();
  skipping.edges.push_back({LayerId{2}, LayerId{5}, EdgeKind::kDetached, {Bytes{4}}});
  std::sort(skipping.edges.begin(), skipping.edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
  Plan plan = two_stages();
  plan.model_hash = model_hash(skipping);
  const StepProgram program = make_program(plan, skipping, 2, false);
  const PipelineTopology& pipeline = program.topology.pipelines[0];
  ASSERT_EQ(pipeline.crossings.size(), 1U);
  EXPECT_EQ(pipeline.crossings[0].from, StageId{0});
  EXPECT_EQ(pipeline.crossings[0].to, StageId{1});
  EXPECT_EQ(pipeline.crossings[0].edges, (std::vector<std::size_t>{3, 4}));  // 2 to 5 and 3 to 4
  EXPECT_EQ(pipeline.crossings[0].carrying, (std::vector<std::size_t>{4}));
  EXPECT_EQ(pipeline.outgoing, (std::vector<std::vector<std::size_t>>{{0}, {}}));
  EXPECT_EQ(pipeline.incoming, (std::vector<std::vector<std::size_t>>{{}, {0}}));
}

TEST(StepProgram, RefusesATiedParameterWithAUseThatReachesNoLoss) {
  ModelProfile tied = structure();
  tied.tied = {{"table", Bytes{4}, {LayerId{2}, LayerId{5}}}};
  for (std::size_t e = 0; e < tied.edges.size(); ++e) {
    if (tied.edges[e].from == LayerId{2}) tied.edges[e].kind = EdgeKind::kDetached;
  }
  Plan plan = two_stages();
  plan.model_hash = model_hash(tied);
  EXPECT_EQ(refusal(plan, tied), "a use of the tied parameter table reaches no loss");
}

TEST(StepProgram, RefusesSchedulesThatDecideByTimes) {
  Plan plan = two_stages();
  plan.schedule = DispatchPolicy::kFifo;
  EXPECT_EQ(refusal(plan), "a dispatch policy decides by times, which are not known here");
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kZb1p};
  EXPECT_NE(refusal(plan).find("times"), std::string::npos) << refusal(plan);
}

TEST(StepProgram, AShortBatchKeepsTheHalfOfAPairThatItHas) {
  Plan plan = two_stages();
  plan.batch_size = 3 * plan.micro_batch_size;
  plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{2}}};
  ExplicitSchedule lists;
  lists.devices.resize(1);
  for (const char* text : {"0F0", "(0F1;0B0)OVERLAP_F_B", "(0F2;0B1)OVERLAP_F_B", "0B2"}) {
    lists.devices[0].push_back(parse_action(text));
  }
  plan.schedule = lists;
  const Plan shorter = shorten(plan, 2 * plan.micro_batch_size);
  const auto& kept = std::get<ExplicitSchedule>(shorter.schedule).devices[0];
  std::string text;
  for (const Action& action : kept) text += to_text(action) + " ";
  EXPECT_EQ(text, "0F0 (0F1;0B0)OVERLAP_F_B 0B1 ");
}

TEST(StepProgram, KnowsWhoOwnsWhat) {
  const PlanShape shape{.micro_batches = 7, .cuts = {{3}, {5}}, .owned = {5, 2}};
  const StepProgram program =
      make_program(make_small_plan(structure(), shape), structure(), 4, false);
  const std::vector<TreeNode> first{{0, 5}};
  const std::vector<TreeNode> second{{5, 7}};
  for (std::size_t l = 0; l < kSmallLayers; ++l) {
    const DeviceId one{l < 3 ? 0 : 1};
    const DeviceId two{l < 5 ? 2 : 3};
    EXPECT_EQ(program.topology.owners[l], (std::vector<LayerOwner>{{one, first}, {two, second}}))
        << l;
  }
  EXPECT_EQ(program.device_of(PipelineId{1}, StageId{1}, MicroBatchId{6}), DeviceId{3});
}

TEST(StepProgram, AnOwnerMayHaveNoMicroBatch) {
  const PlanShape shape{.cuts = {{}, {}}, .owned = {6, 0}};
  const StepProgram program =
      make_program(make_small_plan(structure(), shape), structure(), 2, false);
  EXPECT_EQ(program.topology.owners[0],
            (std::vector<LayerOwner>{{DeviceId{0}, {{0, 6}}}, {DeviceId{1}, {}}}));
}

// Two pipelines go through one device in opposite directions, so it owns the layers of both halves.
TEST(StepProgram, ADeviceInTwoPipelinesOwnsTheMicroBatchesOfBoth) {
  Plan plan = two_stages();
  plan.pipelines = {make_pipeline(kSmallLayers, {LayerId{4}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{3}, MicroBatchId{5}}),
                    make_pipeline(kSmallLayers, {LayerId{6}}, {DeviceId{1}, DeviceId{0}},
                                  {MicroBatchId{0}, MicroBatchId{2}})};
  const StepProgram program = make_program(plan, structure(), 2, false);
  EXPECT_EQ(program.topology.owners[0],
            (std::vector<LayerOwner>{{DeviceId{0}, {{3, 6}}}, {DeviceId{1}, {{0, 3}}}}));
  EXPECT_EQ(program.topology.owners[5], (std::vector<LayerOwner>{{DeviceId{1}, {{0, 3}, {3, 6}}}}));
}

TEST(Shorten, KeepsTheIndicesOfTheMicroBatchesThatAreLeft) {
  const Plan plan =
      make_small_plan(structure(), {.micro_batches = 6, .cuts = {{}, {4}}, .owned = {3, 3}});
  const auto owned = [&](int samples, std::size_t pipeline) {
    return shorten(plan, samples).pipelines[pipeline].micro_batches;
  };
  const auto interval = [](int first, int last) {
    return std::vector<MicroBatches>{{MicroBatchId{first}, MicroBatchId{last}}};
  };
  EXPECT_EQ(shorten(plan, 17).micro_batches(), 6);
  EXPECT_EQ(owned(17, 1), interval(3, 5));
  EXPECT_EQ(owned(13, 1), interval(3, 4));
  EXPECT_EQ(owned(10, 1), interval(3, 3));
  EXPECT_EQ(owned(9, 1), std::vector<MicroBatches>{});
  EXPECT_EQ(owned(9, 0), interval(0, 2));
  EXPECT_EQ(owned(1, 0), interval(0, 0));
  EXPECT_EQ(samples_in(shorten(plan, 13), MicroBatchId{4}), 1);
  EXPECT_EQ(shorten(plan, plan.batch_size), plan);
}

TEST(Structure, CountsParametersByHand) {
  const ModelProfile& profile = structure();
  validate(profile, "structure");
  ASSERT_EQ(profile.layers.size(), static_cast<std::size_t>(kSmallLayers));
  // The model has dim 32, 16 patches of 2 x 2 of one channel and the class token, and 10 classes.
  const std::int64_t embedding = (4 * 32 + 32) + 32 + 17 * 32;
  const std::int64_t attention = 2 * 32 + (32 * 96 + 96) + (32 * 32 + 32);
  const std::int64_t mlp = 2 * 32 + (32 * 128 + 128) + (128 * 32 + 32);
  const std::int64_t head = 2 * 32 + (32 * 10 + 10);
  const std::vector<std::int64_t> values = {embedding, attention, mlp, attention,
                                            mlp,       attention, mlp, head};
  for (std::size_t l = 0; l < values.size(); ++l) {
    EXPECT_EQ(profile.layers[l].parameters, Bytes{4 * values[l]}) << l;
    EXPECT_EQ(profile.layers[l].optimizer_state, Bytes{8 * values[l]}) << l;
    EXPECT_EQ(profile.layers[l].has_loss, l == 7) << l;
  }
  EXPECT_EQ(profile.input_bytes_per_sample, Bytes{4 * 64});
  for (const Edge& edge : profile.edges) {
    EXPECT_EQ(edge.tensor_bytes_per_sample, std::vector<Bytes>{Bytes{4 * 17 * 32}});
  }
}

}  // namespace
}  // namespace frazil
