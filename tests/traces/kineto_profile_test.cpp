#include "traces/kineto_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "tests/traces/kineto_text.h"
#include "traces/json_stream.h"

namespace frazil {
namespace {

KinetoImport import_texts(const std::vector<std::string>& texts,
                          const KinetoOptions& options = {}) {
  std::vector<std::unique_ptr<TraceFile>> files;
  std::vector<std::filesystem::path> paths;
  for (const std::string& text : texts) {
    files.push_back(
        std::make_unique<TraceFile>(text, "rank" + std::to_string(files.size()) + ".json"));
    paths.push_back(files.back()->path());
  }
  return import_kineto(paths, options);
}

KinetoImport import_text(const std::string& text, const KinetoOptions& options = {}) {
  return import_texts({text}, options);
}

std::string refusal(const std::vector<std::string>& texts, const KinetoOptions& options = {}) {
  try {
    import_texts(texts, options);
  } catch (const InputError& error) {
    return error.found() + ", expected " + error.expected();
  }
  return "taken";
}

struct LayerTimes {
  std::string name;
  std::int64_t forward = 0;
  std::int64_t input = 0;
  std::int64_t weight = 0;

  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
  friend std::ostream& operator<<(std::ostream& out, const LayerTimes& times) {
    return out << times.name << " F " << times.forward << " I " << times.input << " W "
               << times.weight;
  }
};

std::vector<LayerTimes> times_of(const KinetoImport& import) {
  std::vector<LayerTimes> times;
  for (const Layer& layer : import.profile.layers) {
    const CostSample& cost = layer.costs.front();
    times.push_back({layer.name, cost.forward.count(), cost.backward_input.count(),
                     cost.backward_weight.count()});
  }
  return times;
}

std::string floats(const std::string& dims) {
  return R"("Input type": ["float"], "Input Dims": [)" + dims + "], ";
}

// One training step on one thread, as an embedding, a linear layer with ReLU and a head run it;
// all times a multiple of `scale`. The numbers behind the nodes are those of autograd.
//
//   100      200          400     500 510  540 550      760 800   900 1000
//    |embed   |mid         |head   |   |loss|   |backward|   |update|   |
//     10       11     13    14          16       16 15 .. 10
class TrainingStep {
 public:
  TrainingStep(KinetoText& text, std::int64_t start, std::int64_t scale, std::int64_t sequence,
               bool has_shapes)
      : text_(text), start_(start), scale_(scale), sequence_(sequence), has_shapes_(has_shapes) {}

  void write(int number, const std::string& prefix) {
    text_.range("ProfilerStep#" + std::to_string(number), 1, at(0), at(1000));
    // Takes the number of the node that the embedding will make.
    text_.op("aten::detach_", 1, at(20), at(30), sequence_);
    range(prefix + "embed", 100, 200);
    op("aten::embedding", 110, 190, 0);
    range(prefix + "mid", 200, 400);
    op("aten::linear", 210, 300, 1);
    op("aten::relu", 310, 380, 3);
    range(prefix + "head", 400, 500);
    op("aten::linear", 410, 490, 4);
    op("aten::cross_entropy_loss", 510, 540, 6);
    text_.op("aten::ones_like", 1, at(545), at(546), sequence_ + 7);
    node("NllLossBackward0", 550, 560, 6, "[]");
    node("AddmmBackward0", 560, 601, 5, "[8, 2]");
    accumulate(601, 606, "[2]");
    node("TBackward0", 606, 608, 4, "[4, 2]");
    accumulate(608, 611, "[2, 4]");
    node("ReluBackward0", 611, 631, 3, "[8, 4]");
    node("AddmmBackward0", 631, 691, 2, "[8, 4]");
    accumulate(691, 694, "[4]");
    node("TBackward0", 694, 695, 1, "[4, 4]");
    accumulate(695, 700, "[4, 4]");
    node("EmbeddingBackward0", 700, 750, 0, "[8, 4]");
    accumulate(750, 760, "[30, 4]");
    range("Optimizer.step#SGD.step", 800, 900);
    text_.op("aten::_foreach_add_", 1, at(810), at(890));
  }

 private:
  std::int64_t at(std::int64_t time) const { return start_ + time * scale_; }
  void range(const std::string& name, std::int64_t start, std::int64_t end) {
    text_.range(name, 1, at(start), at(end));
  }
  void op(const std::string& name, std::int64_t start, std::int64_t end, std::int64_t sequence) {
    text_.op(name, 1, at(start), at(end), sequence_ + sequence);
    text_.op("aten::inner", 1, at(start) + 1, at(end), sequence_ + sequence);
  }
  void node(const std::string& name, std::int64_t start, std::int64_t end, std::int64_t sequence,
            const std::string& dims) {
    text_.node(name, 1, at(start), at(end), sequence_ + sequence, 1,
               has_shapes_ ? floats(dims) : "");
  }
  void accumulate(std::int64_t start, std::int64_t end, const std::string& dims) {
    text_.accumulate(1, at(start), at(end), has_shapes_ ? floats(dims) : "");
  }

  KinetoText& text_;
  std::int64_t start_;
  std::int64_t scale_;
  std::int64_t sequence_;
  bool has_shapes_;
};

// Steps of the given scales; the layers' ranges begin with `prefix`.
std::string training(const std::vector<std::int64_t>& scales, const std::string& prefix,
                     bool has_shapes = false) {
  KinetoText text;
  std::int64_t start = 1'000'000;
  int number = 0;
  for (const std::int64_t scale : scales) {
    TrainingStep(text, start, scale, 10 + 7 * number, has_shapes).write(number, prefix);
    start += 2000 * scale;
    ++number;
  }
  return text.text();
}

// By hand from the picture: mid's backward is 20 of ReLU, 60 of both, 9 of W; head's 41 and 10.
const std::vector<LayerTimes> kOneStep = {
    {"layer:embed", 100, 0, 60}, {"layer:mid", 200, 50, 39}, {"layer:head", 100, 20, 31}};

TEST(KinetoProfile, TakesLayersFromNamedRanges) {
  const KinetoImport import = import_text(training({1}, "layer:"));
  EXPECT_EQ(times_of(import), kOneStep);
  EXPECT_TRUE(import.profile.backward_was_split_by_rule);
  EXPECT_EQ(import.report.layers_by, LayerSource::kRanges);
  EXPECT_FALSE(import.report.is_device_time);
  EXPECT_TRUE(import.profile.layers.back().has_loss);
  EXPECT_EQ(parse_model_profile(to_json(import.profile), "p.json"), import.profile);
}

TEST(KinetoProfile, DropsTheWarmUpAndTakesTheMedianOfTheOtherSteps) {
  const std::vector<LayerTimes> twice = {
      {"layer:embed", 200, 0, 120}, {"layer:mid", 400, 100, 78}, {"layer:head", 200, 41, 61}};
  const KinetoImport odd = import_text(training({50, 1, 3, 2}, "layer:"));
  EXPECT_EQ(times_of(odd), twice);
  EXPECT_EQ(odd.report.steps, 3);
  EXPECT_EQ(odd.report.steps_dropped, 1);
  // Of an even number the middle of the middle two: here I of the head is between 20 and 61.
  const std::vector<LayerTimes> between = {
      {"layer:embed", 200, 0, 120}, {"layer:mid", 400, 100, 78}, {"layer:head", 200, 40, 62}};
  EXPECT_EQ(times_of(import_text(training({50, 3, 1, 9, 1}, "layer:"))), between);
}

TEST(KinetoProfile, ReportsWhatWasNotAttributed) {
  const KinetoReport report = import_text(training({50, 1, 3, 2}, "layer:")).report;
  // A step's operations take 651: forward 320, detach 10, loss 30, ones 1, backward 210, update 80.
  EXPECT_EQ(report.operations.total, 651 * 6);
  EXPECT_EQ(report.operations.attributed, (651 - 10 - 30 - 1 - 10) * 6);
  const std::vector<std::pair<std::string, Duration>> largest = {
      {"aten::cross_entropy_loss", Duration{180}},
      {"NllLossBackward0", Duration{60}},
      {"aten::detach_", Duration{60}}};
  EXPECT_EQ(report.largest_unattributed, largest);
}

TEST(KinetoProfile, FindsTheSameLayersWithoutRanges) {
  const KinetoImport import = import_text(training({50, 1, 3, 2}, "unmarked:"));
  EXPECT_EQ(import.report.layers_by, LayerSource::kOperations);
  const std::vector<LayerTimes> expected = {{"embedding_0", 200, 0, 120},
                                            {"linear_0", 400, 100, 78},
                                            {"linear_1", 200, 41, 61},
                                            {"cross_entropy_loss_0", 60, 20, 0}};
  EXPECT_EQ(times_of(import), expected);
  EXPECT_EQ(import.report.operations.attributed, (651 - 10 - 1) * 6);
}

TEST(KinetoProfile, TakesBytesFromRecordedShapes) {
  KinetoOptions options;
  options.micro_batch_size = 8;
  const ModelProfile profile = import_text(training({1}, "layer:", true), options).profile;
  std::vector<std::int64_t> parameters;
  std::vector<std::int64_t> updates;
  std::vector<std::int64_t> stashes;
  for (const Layer& layer : profile.layers) {
    parameters.push_back(layer.parameters.count);
    updates.push_back(layer.update.count());
    stashes.push_back(layer.costs.front().stash.count);
  }
  EXPECT_EQ(parameters, (std::vector<std::int64_t>{480, 80, 40}));
  EXPECT_EQ(updates, (std::vector<std::int64_t>{80, 13, 7}));  // of 100
  EXPECT_EQ(stashes, (std::vector<std::int64_t>{0, 128, 128}));
  ASSERT_EQ(profile.edges.size(), 2U);
  EXPECT_EQ(profile.edges[0].tensor_bytes_per_sample, std::vector<Bytes>{Bytes{16}});
  EXPECT_EQ(profile.edges[1].tensor_bytes_per_sample, std::vector<Bytes>{Bytes{16}});
}

TEST(KinetoProfile, SaysSoWhereBytesAreUnknown) {
  const KinetoImport import = import_text(training({1}, "layer:"));
  std::vector<std::int64_t> updates;
  for (const Layer& layer : import.profile.layers) {
    EXPECT_EQ(layer.parameters.count, 1);
    updates.push_back(layer.update.count());
  }
  EXPECT_EQ(updates, (std::vector<std::int64_t>{20, 40, 40}));  // by 1, 2 and 2 tensors
  const std::vector<std::string>& notes = import.report.notes;
  const auto has = [&](std::string_view begin) {
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string& note) { return note.starts_with(begin); });
  };
  EXPECT_TRUE(has("parameter bytes unknown"));
  EXPECT_TRUE(has("boundary and stash bytes unknown"));
  EXPECT_TRUE(has("backward nodes that compute both gradients"));
}

// A forward on thread 1, its backward on thread 2, each operation with a kernel of its own.
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
  // Half of 29 and its accumulation: I 14, W 15 + 31. The first layer's backward is all W.
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

TEST(KinetoProfile, DividesAStepByItsMicroBatches) {
  KinetoText text;
  std::int64_t start = 0;
  for (const std::int64_t pause : {0, 500}) {  // fetching the second micro-batch is no layer's time
    start += pause;
    text.op("aten::linear", 1, start, start + 40, start + 1)
        .op("aten::relu", 1, start + 40, start + 50, start + 3)
        .op("aten::linear", 1, start + 50, start + 100, start + 4)
        .node("AddmmBackward0", 1, start + 200, start + 300, start + 5)
        .node("ReluBackward0", 1, start + 300, start + 310, start + 3)
        .node("AddmmBackward0", 1, start + 310, start + 340, start + 2);
  }
  KinetoOptions options;
  options.micro_batches = 2;
  const std::vector<LayerTimes> expected = {{"linear_0", 50, 40, 0}, {"linear_1", 50, 100, 0}};
  EXPECT_EQ(times_of(import_text(text.text(), options)), expected);
  options.micro_batches = 3;
  EXPECT_EQ(refusal({text.text()}, options),
            "4 operations with parameters in a step, expected as many in each of 3 micro-batches");
  options.micro_batches = 1;
  EXPECT_EQ(times_of(import_text(text.text(), options)).size(), 4U);
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

// A checkpointed layer: its range stands inside the operation that stands for it, and once more
// inside the backward node, which runs the forward again.
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
  // What another graph's node did inside the hook is not that node's.
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

// A kind nobody knows, but the gradient of a parameter comes right out of it.
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

TEST(KinetoProfile, PutsRanksTogether) {
  // A data-parallel rank adds samples, a pipeline's next rank adds layers.
  const std::string other =
      KinetoText().range("layer:last", 1, 0, 10).op("aten::linear", 1, 1, 9, 1).text();
  const KinetoImport import =
      import_texts({training({1}, "layer:"), training({3}, "layer:"), other});
  const std::vector<LayerTimes> expected = {{"layer:embed", 200, 0, 120},
                                            {"layer:mid", 400, 100, 78},
                                            {"layer:head", 200, 40, 62},
                                            {"layer:last", 10, 0, 0}};
  EXPECT_EQ(times_of(import), expected);
  // The update of a rank belongs to its own layers, by their 1, 2 and 2 tensors.
  std::vector<std::int64_t> updates;
  for (const Layer& layer : import.profile.layers) updates.push_back(layer.update.count());
  EXPECT_EQ(updates, (std::vector<std::int64_t>{40, 80, 80, 0}));
  EXPECT_EQ(import.report.traces, 3);
  EXPECT_EQ(import.report.steps, 3);
}

TEST(KinetoProfile, RefusesTracesThatGiveNoModel) {
  const std::string linear = KinetoText().op("aten::linear", 1, 0, 9, 1).text();
  const std::string conv = KinetoText().op("aten::conv2d", 1, 0, 9, 1).text();
  EXPECT_EQ(refusal({KinetoText().op("aten::mul", 1, 0, 9, 1).text()}),
            "neither ranges that name layers nor operations with parameters, expected a trace of "
            "training steps");
  KinetoOptions options;
  options.layer_prefix = "stage";
  options.needs_ranges = true;
  EXPECT_EQ(refusal({linear}, options),
            "no range in the counted steps, expected ranges whose names begin with \"stage\"");
  EXPECT_EQ(refusal({linear, conv}),
            "1 layers by operations, expected the 1 of the first trace by operations, or ranges "
            "that name layers in every trace");
  const std::string with_kernel =
      KinetoText().op("aten::linear", 1, 0, 9, 1).launch(1, 1, 1).kernel("k", 5, 5, 1).text();
  EXPECT_EQ(refusal({linear, with_kernel}), "device work, expected the same as in the first trace");
  const std::string uneven = KinetoText()
                                 .range("ProfilerStep#1", 1, 0, 10)
                                 .range("ProfilerStep#2", 1, 10, 20)
                                 .op("aten::linear", 1, 11, 12, 1)
                                 .range("ProfilerStep#3", 1, 20, 30)
                                 .op("aten::conv2d", 1, 21, 22, 2)
                                 .text();
  EXPECT_EQ(
      refusal({uneven}),
      "steps or micro-batches with other operations (\"conv2d_0\", layer 0 of 1), expected the "
      "1 layers of the first in each, or ranges that name layers");
}

TEST(KinetoProfile, GivesEqualBytesForEqualTraces) {
  const std::string text = training({2, 1, 1}, "layer:", true);
  EXPECT_EQ(to_json(import_text(text).profile), to_json(import_text(text).profile));
}

// Anything goes: nested and overlapping ranges, numbers out of order, launches without owner.
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
