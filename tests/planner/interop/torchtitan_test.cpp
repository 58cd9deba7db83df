#include "planner/interop/torchtitan.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/planner/interop/pytorch_schedules.h"

namespace frazil {
namespace {

// A what-if whose stages have one layer each, named so. The layer in front of them, the what-if's
// input, is made a part of the first.
WhatIfInputs named_inputs(ScheduleKind kind, int stages, std::vector<std::string> names) {
  WhatIfInputs inputs = make_inputs(kind, stages, 4);
  names.insert(names.begin(), names.front());
  EXPECT_EQ(inputs.profile.layers.size(), names.size());
  for (std::size_t l = 0; l < names.size(); ++l) {
    inputs.profile.layers[l].name = names[l];
    inputs.profile.layers[l].parameters = Bytes{8};
  }
  return inputs;
}

std::string toml_of(const WhatIfInputs& inputs) {
  return to_torchtitan_toml(inputs.plan, inputs.profile, "out.csv", "model.json");
}

template <class Error>
std::string complaint_about(const WhatIfInputs& inputs) {
  try {
    toml_of(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Torchtitan, NamesTheModulesOfEachStage) {
  EXPECT_EQ(toml_of(named_inputs(ScheduleKind::kOneForwardOneBackward, 2,
                                 {"layer:tok_embeddings", "layer:layers.0"})),
            "# For torchtitan 0.2: the part of a job configuration that runs a plan of frazil.\n"
            "[training]\n"
            "local_batch_size = 4\n"
            "\n"
            "[parallelism]\n"
            "data_parallel_replicate_degree = 1\n"
            "data_parallel_shard_degree = 1\n"
            "pipeline_parallel_degree = 2\n"
            "# The order of work is that of the file; the name says only how stages lie on ranks.\n"
            "pipeline_parallel_schedule = \"1F1B\"\n"
            "pipeline_parallel_schedule_csv = \"out.csv\"\n"
            "pipeline_parallel_microbatch_size = 1\n"
            "module_fqns_per_model_part = [\n"
            "  [\"tok_embeddings\"],\n"
            "  [\"layers.0\"],\n"
            "]\n");
}

TEST(Torchtitan, AModuleIsAPathUpToItsPlaceInAList) {
  EXPECT_EQ(module_of_layer("layer:layers.3"), "layers.3");
  EXPECT_EQ(module_of_layer("layers.3.attention"), "layers.3");
  EXPECT_EQ(module_of_layer("step/model.layers.12.mlp.0"), "model.layers.12");
  EXPECT_EQ(module_of_layer("norm"), "norm");
  EXPECT_EQ(module_of_layer("conv_1x1"), "conv_1x1");
  EXPECT_EQ(module_of_layer("layer4.0.conv1"), "layer4.0");
}

TEST(Torchtitan, LayersNamedAfterOperationsAreNoModules) {
  for (const char* name : {"Linear_0", "linear_3", "TransformerBlock_11", "layer_norm_0",
                           "layer:", "0.weight", "a..b", "a-b", "layers.3b", "conv2d_3"}) {
    EXPECT_EQ(module_of_layer(name), "") << name;
  }
}

TEST(Torchtitan, TheLossIsLeftOutAndModulesOfSeveralLayersCountOnce) {
  WhatIfInputs inputs = named_inputs(ScheduleKind::kGpipe, 2, {"layers.0.attention", "x"});
  inputs.profile.layers[1].name = "layers.0.feed_forward";
  inputs.profile.layers[2].name = "output";
  inputs.profile.layers.push_back(inputs.profile.layers.back());
  inputs.profile.layers.back().name = "layer:loss";
  inputs.profile.layers.back().parameters = Bytes{0};
  Pipeline& pipeline = inputs.plan.pipelines.front();
  pipeline.stages[1].layers.front().last = LayerId{std::size_t{3}};
  EXPECT_EQ(modules_of_stages(pipeline, inputs.profile, "model.json"),
            (std::vector<std::vector<std::string>>{{"layers.0"}, {"output"}}));
  pipeline.stages[0].layers.front().last = LayerId{std::size_t{0}};
  pipeline.stages[1].layers.front().first = LayerId{std::size_t{1}};
  EXPECT_EQ(complaint_about<InfeasibleError>(inputs),
            "torchtitan cuts between modules, and layer \"layers.0.feed_forward\" of stage 1 lies "
            "in module layers.0, which begins in stage 0");
}

TEST(Torchtitan, TheScheduleIsNamedAfterThePlaceOfStages) {
  const std::vector<std::string> four = {"a", "b", "c", "d"};
  const auto named = [&](ScheduleKind kind) { return toml_of(named_inputs(kind, 2, four)); };
  EXPECT_NE(
      named(ScheduleKind::kInterleaved).find("pipeline_parallel_schedule = \"Interleaved1F1B\"\n"),
      std::string::npos);
  EXPECT_NE(named(ScheduleKind::kZbV).find("pipeline_parallel_schedule = \"ZBVZeroBubble\"\n"),
            std::string::npos);
  EXPECT_NE(named(ScheduleKind::kZbV).find("pipeline_parallel_degree = 2\n"), std::string::npos);
  WhatIfInputs turned = named_inputs(ScheduleKind::kZbV, 2, four);
  std::swap(turned.plan.pipelines[0].stages[1].devices, turned.plan.pipelines[0].stages[3].devices);
  EXPECT_NE(complaint_about<InfeasibleError>(turned).find("in turn, or as a V"), std::string::npos);
}

TEST(Torchtitan, RefusesWhatItDoesNotHave) {
  WhatIfInputs nameless = named_inputs(ScheduleKind::kGpipe, 2, {"Linear_0", "Linear_1"});
  EXPECT_EQ(complaint_about<InputError>(nameless),
            "model.json: found layer \"Linear_0\", expected the path of a module, such as "
            "\"layer:layers.3\": record the trace with ranges named so (docs/tutorial.md)");
  WhatIfInputs short_last = named_inputs(ScheduleKind::kGpipe, 2, {"a", "b"});
  short_last.plan.micro_batch_size = 3;
  EXPECT_NE(complaint_about<InfeasibleError>(short_last).find("ends with a shorter one than 3"),
            std::string::npos);
  WhatIfInputs single = named_inputs(ScheduleKind::kGpipe, 1, {"a"});
  EXPECT_NE(complaint_about<InfeasibleError>(single).find("no pipeline on one rank"),
            std::string::npos);
  WhatIfInputs unequal = named_inputs(ScheduleKind::kGpipe, 2, {"a", "b"});
  unequal.plan.pipelines.push_back(unequal.plan.pipelines.front());
  unequal.plan.pipelines.back().micro_batches.front().last = MicroBatchId{1};
  EXPECT_NE(complaint_about<InfeasibleError>(unequal).find("differ"), std::string::npos);
  WhatIfInputs shared = named_inputs(ScheduleKind::kGpipe, 2, {"a", "b"});
  shared.plan.pipelines[0].stages[0].devices = {DeviceId{std::size_t{0}}, DeviceId{std::size_t{1}}};
  EXPECT_NE(complaint_about<InfeasibleError>(shared).find("a stage on several devices"),
            std::string::npos);
  WhatIfInputs lonely = named_inputs(ScheduleKind::kGpipe, 2, {"a", "layer:loss"});
  lonely.profile.layers[2].parameters = Bytes{0};
  EXPECT_EQ(complaint_about<InfeasibleError>(lonely),
            "torchtitan computes the loss itself, and stage 1 of this plan has nothing else: "
            "import the model with --join-loss, and plan again");
}

}  // namespace
}  // namespace frazil
