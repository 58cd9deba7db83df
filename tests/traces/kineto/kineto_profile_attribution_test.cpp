// Tests to which layer the time of operations, kernels and backward nodes belongs, on small traces.

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "tests/traces/kineto/kineto_import.h"
#include "tests/traces/kineto/kineto_text.h"
#include "traces/json_stream.h"
#include "traces/kineto/kineto_profile.h"

namespace frazil {
namespace {

// Writes a forward on thread 1 and its backward on thread 2, each operation with a kernel of its
// own.
std::string on_a_device(const std::string& prefix) {
  return KinetoText()
      .range(prefix + "a", 1, 0, 100)
      .op("aten::conv2d", 1, 10, 50, 5)
      .launch(1, 20, 1)
      .kernel("implicit_gemm", 1000, 70, 1)
      .op("aten::relu", 1, 60, 90, 6)
      .launch(1, 70, 2)
      .kernel("threshold", 1070, 11, 2)
      .range(prefix + "b", 1, 100, 200)
      .op("aten::batch_norm", 1, 110, 150, 7, R"("External id": 77, )")
      .launch(1, 120, 3)  // a graph: two kernels
      .kernel("bn_forward_1", 1090, 13, 3)
      .kernel("bn_forward_2", 1110, 17, 3)
      .launch(1, 170, 4)  // from Python, in no operation
      .kernel("triton_fused", 1130, 19, 4)
      .kernel("without_launch", 1150, 23, 99, 77)
      .node("CudnnBatchNormBackward0", 2, 300, 310, 7)
      .launch(2, 302, 5)
      .kernel("bn_backward", 1200, 29, 5)
      .accumulate(2, 311, 320)
      .launch(2, 315, 6)
      .kernel("add_gradient", 1230, 31, 6)
      .launch(2, 318, 7)
      .kernel("ncclDevKernel_AllReduce_Sum_f32_RING", 1261, 1000, 7)
      .node("ReluBackward0", 2, 330, 340, 6)
      .launch(2, 332, 8)
      .kernel("threshold_backward", 1300, 37, 8)
      .node("ConvolutionBackward0", 2, 350, 360, 5)
      .launch(2, 352, 9)
      .kernel("dgrad", 1340, 41, 9)
      .launch(2, 353, 10)
      .kernel("wgrad", 1381, 43, 10)
      .accumulate(2, 361, 370)
      .range("Optimizer.step#SGD.step", 1, 400, 500)
      .op("aten::_foreach_add_", 1, 410, 450)
      .launch(1, 420, 11)
      .kernel("multi_tensor_apply", 1500, 47, 11)
      .op("aten::item", 1, 600, 700)
      .launch(1, 650, 12)
      .kernel("Memcpy DtoH", 1600, 3, 12)
      .text();
}

TEST(KinetoProfile, FollowsKernelsToTheOperationsThatLaunchedThem) {
  const KinetoImport import = import_text(on_a_device("layer:"));
  EXPECT_TRUE(import.report.is_device_time);
  // The node of 29 is halved and its accumulation belongs to W: I 14, W 15 + 31. The first layer's
  // backward is all W.
  const std::vector<LayerTimes> expected = {{"layer:a", 70 + 11, 0, 37 + 41 + 43},
                                            {"layer:b", 13 + 17 + 19 + 23, 14, 15 + 31}};
  EXPECT_EQ(times_of(import), expected);
  EXPECT_EQ(import.profile.layers[0].update + import.profile.layers[1].update, Duration{47});
  EXPECT_EQ(import.report.communication, Duration{1000});
  EXPECT_EQ(import.report.device.total - import.report.device.attributed, 3);
  EXPECT_EQ(import.report.largest_unattributed.front(),
            (std::pair<std::string, Duration>{"aten::item", 3}));
}

TEST(KinetoProfile, FollowsKernelsWithoutRanges) {
  const KinetoImport import = import_text(on_a_device("unmarked:"));
  // Only the launch from Python is in no operation.
  const std::vector<LayerTimes> expected = {{"conv2d_0", 70 + 11, 0, 37 + 41 + 43},
                                            {"batch_norm_0", 13 + 17 + 23, 14, 15 + 31}};
  EXPECT_EQ(times_of(import), expected);
  EXPECT_EQ(import.report.device.total - import.report.device.attributed, 3 + 19);
}

TEST(KinetoProfile, NamesLayersAfterTheirModules) {
  const std::string text = KinetoText()
                               .module("Net_0", 1, 0, 1000)
                               .module("Linear_0", 1, 10, 100)
                               .op("aten::linear", 1, 20, 90, 1)
                               .module("ReLU_0", 1, 110, 200)
                               .op("aten::relu", 1, 120, 190, 3)
                               .module("MultiheadAttention_0", 1, 210, 600)
                               .op("aten::linear", 1, 220, 300, 4)
                               .op("aten::scaled_dot_product_attention", 1, 310, 400, 6)
                               .op("aten::linear", 1, 410, 500, 7)
                               .op("aten::add", 1, 700, 800, 9)
                               .text();
  const std::vector<LayerTimes> expected = {{"Linear_0", 200, 0, 0},
                                            {"MultiheadAttention_0", 580, 0, 0}};
  EXPECT_EQ(times_of(import_text(text)), expected);
}

TEST(KinetoProfile, TakesATransposedWeightForTheBeginningOfItsLayer) {
  const std::string text = KinetoText()
                               .op("aten::t", 1, 0, 10, 1)
                               .op("aten::addmm", 1, 10, 50, 2)
                               .op("aten::relu", 1, 50, 60, 3)
                               .op("aten::t", 1, 60, 70, 4)
                               .op("aten::matmul", 1, 70, 100, 5)
                               .op("aten::matmul", 1, 100, 120, 6)  // two activations
                               .text();
  const std::vector<LayerTimes> expected = {{"addmm_0", 60, 0, 0}, {"matmul_0", 60, 0, 0}};
  EXPECT_EQ(times_of(import_text(text)), expected);
}

TEST(KinetoProfile, GivesNestedRangesTheirOwnTime) {
  const std::string text = KinetoText()
                               .range("layer:block", 1, 0, 100)
                               .op("aten::add", 1, 5, 10, 1)
                               .range("layer:mlp", 1, 20, 80)
                               .op("aten::linear", 1, 30, 70, 2)
                               .op("aten::mul", 1, 85, 95, 4)
                               .node("MulBackward0", 1, 200, 207, 4)
                               .node("AddmmBackward0", 1, 210, 220, 3)
                               .node("AddBackward0", 1, 230, 235, 1)
                               .text();
  const std::vector<LayerTimes> expected = {{"layer:block", 40, 12, 0}, {"layer:mlp", 60, 10, 0}};
  EXPECT_EQ(times_of(import_text(text)), expected);
}

// The range of a checkpointed layer stands inside the operation that stands for the layer, and once
// more inside the backward node, which runs the forward again.
TEST(KinetoProfile, CountsARecomputedForwardAsBackward) {
  const std::string text = KinetoText()
                               .op("CheckpointFunction", 1, 0, 100, 1)
                               .range("layer:a", 1, 10, 90)
                               .op("aten::linear", 1, 20, 80)
                               .node("CheckpointFunctionBackward", 1, 200, 300, 1)
                               .range("layer:a", 1, 210, 250)
                               .op("aten::linear", 1, 220, 240, 2)
                               .node("AddmmBackward0", 1, 260, 290, 3)
                               .text();
  EXPECT_EQ(times_of(import_text(text)), (std::vector<LayerTimes>{{"layer:a", 80, 100, 0}}));
}

TEST(KinetoProfile, TellsForwardThreadsApartByTheirNumbers) {
  // Both threads count from their own number; the profiler calls them 7 and 3.
  const std::string text = KinetoText()
                               .range("layer:a", 1, 0, 100)
                               .op("aten::linear", 1, 10, 50, 1)
                               .op("aten::relu", 1, 60, 70, 2)
                               .range("layer:b", 2, 100, 200)
                               .op("aten::linear", 2, 110, 150, 2)
                               .op("aten::relu", 2, 160, 170, 4)
                               .node("ReluBackward0", 3, 300, 301, 4, 3)
                               .node("AddmmBackward0", 3, 310, 312, 3, 3)
                               .node("ReluBackward0", 3, 320, 324, 2, 7)
                               .node("AddmmBackward0", 3, 330, 338, 1, 7)
                               .text();
  const std::vector<LayerTimes> expected = {{"layer:a", 100, 12, 0}, {"layer:b", 100, 3, 0}};
  EXPECT_EQ(times_of(import_text(text)), expected);
}

// The profiler gives the engine's call the number of the event after it, if that is the node.
TEST(KinetoProfile, FollowsANodeBehindAHookToItsForward) {
  const auto number = [](int sequence) {
    return R"("Sequence number": )" + std::to_string(sequence) + R"(, "Fwd thread id": 1)";
  };
  KinetoText text;
  text.range("layer:a", 1, 0, 100).op("aten::linear", 1, 10, 90, 1);
  text.range("layer:b", 1, 100, 200).op("aten::mul", 1, 110, 190, 2);
  text.event("cpu_op", engine_call("MulBackward0"), "1", 200, 70);
  text.event("user_annotation", "a hook", "1", 210, 10).event("cpu_op", "aten::norm", "1", 212, 5);
  // The work of another graph's node inside the hook does not belong to the node behind it.
  text.event("cpu_op", engine_call("AddmmBackward0"), "1", 218, 2, number(1));
  text.event("cpu_op", "MulBackward0", "1", 230, 30, number(2));
  text.node("AddmmBackward0", 1, 270, 300, 1).accumulate(1, 300, 310);
  const std::vector<LayerTimes> expected = {{"layer:a", 100, 0, 40}, {"layer:b", 100, 70, 0}};
  const KinetoImport import = import_text(text.text());
  EXPECT_EQ(times_of(import), expected);
  EXPECT_EQ(import.report.operations.attributed, import.report.operations.total);
}

TEST(KinetoProfile, SplitsBackwardNodesByTheirKind) {
  for (const char* node : {"AddmmBackward0", "MmBackward0", "ConvolutionBackward0",
                           "NativeBatchNormBackward0", "NativeLayerNormBackward0",
                           "CudnnRnnBackward0", "LinearBackward0", "CompiledFunctionBackward"}) {
    EXPECT_EQ(part_of_node(node), BackwardPart::kBoth) << node;
  }
  for (const char* node : {"ReluBackward0", "BmmBackward0", "ViewBackward0", "SoftmaxBackward0",
                           "LinalgVectorNormBackward0", "UpsampleBilinear2DBackward0"}) {
    EXPECT_EQ(part_of_node(node), BackwardPart::kInput) << node;
  }
  for (const char* node : {"EmbeddingBackward0", "TBackward0", "torch::autograd::AccumulateGrad"}) {
    EXPECT_EQ(part_of_node(node), BackwardPart::kWeight) << node;
  }
}

// Nobody knows this kind of node, but the gradient of a parameter comes right out of it.
TEST(KinetoProfile, SplitsANodeThatFeedsAParameter) {
  const std::string text = KinetoText()
                               .range("layer:frozen", 1, 0, 10)
                               .op("aten::linear", 1, 1, 9, 1)
                               .range("layer:first", 1, 10, 20)
                               .op("MyScale", 1, 11, 19, 1)
                               .range("layer:second", 1, 20, 30)
                               .op("MyScale", 1, 21, 29, 2)
                               .op("aten::relu", 1, 29, 30, 3)
                               .node("ReluBackward0", 1, 100, 103, 3)
                               .node("MyScaleBackward", 1, 110, 121, 2)
                               .accumulate(1, 121, 128)
                               .node("MyScaleBackward", 1, 130, 141, 1)
                               .accumulate(1, 141, 148)
                               .text();
  // The first layer with a parameter has no input that needs a gradient.
  const std::vector<LayerTimes> expected = {
      {"layer:frozen", 10, 0, 0}, {"layer:first", 10, 0, 18}, {"layer:second", 10, 8, 13}};
  const KinetoImport import = import_text(text);
  EXPECT_EQ(times_of(import), expected);
  EXPECT_EQ(import.profile.layers[0].parameters.count, 0);
  EXPECT_EQ(import.profile.layers[1].parameters.count, 1);
}

TEST(KinetoProfile, LeavesABackwardWhoseForwardIsNotInTheTraceAlone) {
  const std::string text = KinetoText()
                               .node("AddmmBackward0", 1, 0, 50, 3)
                               .range("layer:a", 1, 100, 200)
                               .op("aten::linear", 1, 110, 190, 5)
                               .text();
  const KinetoImport import = import_text(text);
  EXPECT_EQ(times_of(import), (std::vector<LayerTimes>{{"layer:a", 100, 0, 0}}));
  EXPECT_EQ(import.report.operations.attributed, 80);
  EXPECT_EQ(import.report.operations.total, 130);
}

// Draws anything: nested and overlapping ranges, numbers out of order, launches without an owner.
std::string random_trace(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) { return static_cast<int>(random() % limit); };
  const std::vector<std::string> names = {"aten::linear", "aten::relu", "aten::t", "aten::addmm",
                                          "aten::mse_loss"};
  const std::vector<std::string> nodes = {"AddmmBackward0", "ReluBackward0", "TBackward0"};
  KinetoText text;
  for (int i = 0; i < 60; ++i) {
    const int thread = 1 + below(2);
    const int start = below(1000);
    const int end = start + below(120);
    switch (below(9)) {
      case 0:
        text.range("layer:" + std::to_string(below(3)), thread, start, end);
        break;
      case 1:
        text.range(below(2) == 0 ? "Optimizer.step#A.step" : "ProfilerStep#1", thread, start, end);
        break;
      case 2:
      case 3:
        text.node(nodes[random() % nodes.size()], thread, start, end + 2, below(20), 1 + below(2));
        break;
      case 4:
        text.accumulate(thread, start, end + 2);
        break;
      case 5:
        text.launch(thread, start, below(30))
            .kernel("k", start, 1 + below(50), below(30), below(9));
        break;
      default:
        text.op(names[random() % names.size()], thread, start, end, below(20) - 1,
                R"("External id": )" + std::to_string(below(9)) + ", ");
    }
  }
  return text.range("layer:0", 1, 0, 1).op("aten::linear", 1, 0, 1, 0).text();
}

std::int64_t sum_of(const TraceCosts& costs) {
  std::int64_t sum = std::accumulate(costs.update.begin(), costs.update.end(), std::int64_t{0});
  for (const auto& steps : costs.layers) {
    for (const LayerStep& step : steps) sum += step.forward + step.input + step.weight + step.both;
  }
  return sum;
}

TEST(KinetoProfile, CountsAllTimeOnceWhateverTheTrace) {
  int device_traces = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    JsonStream stream(random_trace(seed), "t.json");
    const JoinedTrace trace = join_trace(read_kineto_trace(stream, "layer:"));
    const BackwardMatch backward = match_backward(trace);
    TraceLayers layers;
    try {
      layers = find_layers(trace, backward, 1);
    } catch (const InputError&) {
      continue;  // no layer in the steps that count
    }
    const TraceCosts costs = sum_costs(trace, backward, layers);
    std::int64_t lost = 0;
    for (const auto& [name, time] : costs.unattributed) lost += time;
    for (std::size_t i = 1; i < trace.works.size(); ++i) {
      const HostWork& before = trace.works[i - 1];
      ASSERT_TRUE(before.thread != trace.works[i].thread || before.end <= trace.works[i].start);
    }
    const TimeShare& share = costs.is_device_time ? costs.device : costs.operations;
    ASSERT_EQ(share.attributed + lost, share.total);
    device_traces += costs.is_device_time ? 1 : 0;
    if (costs.is_device_time) {
      ASSERT_EQ(sum_of(costs), share.attributed);
    }
  }
  EXPECT_GT(device_traces, 50);
}

}  // namespace
}  // namespace frazil
