#include "traces/kineto/kineto_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "tests/traces/kineto/kineto_import.h"
#include "tests/traces/kineto/kineto_text.h"

namespace frazil {
namespace {

std::string refusal_of_profile(const std::vector<std::string>& texts,
                               const KinetoOptions& options = {}) {
  try {
    import_texts(texts, options);
  } catch (const InputError& error) {
    return error.found() + ", expected " + error.expected();
  }
  return "taken";
}

std::string floats(const std::string& dims) {
  return R"("Input type": ["float"], "Input Dims": [)" + dims + "], ";
}

// Writes one training step on one thread, as an embedding, a linear layer with ReLU and a head run
// it; all times are multiples of `scale`. The numbers behind the nodes are those of autograd.
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
    // The operation takes the number of the node that the embedding will make.
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

// Writes steps of the given scales; the layers' ranges begin with `prefix`.
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

// The times follow by hand from the picture: mid's backward is 20 of ReLU, 60 of both, 9 of W;
// head's is 41 and 10.
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
  // The median of an even number is the mean of the middle two: here I of the head lies between 20
  // and 61.
  const std::vector<LayerTimes> between = {
      {"layer:embed", 200, 0, 120}, {"layer:mid", 400, 100, 78}, {"layer:head", 200, 40, 62}};
  EXPECT_EQ(times_of(import_text(training({50, 3, 1, 9, 1}, "layer:"))), between);
}

TEST(KinetoProfile, TellsHowFarTheMiddleHalfOfTheStepsLiesApart) {
  const KinetoImport import = import_text(training({1, 10, 12, 10, 11}, "layer:"));
  EXPECT_NEAR(import.report.step_spread.value_or(0), 1 / 10.5, 1e-3);
  EXPECT_EQ(import.profile.provenance.at("step_spread"), "9.5 %");
  EXPECT_FALSE(import_text(training({1}, "layer:")).report.step_spread);
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
  EXPECT_EQ(refusal_of_profile({text.text()}, options),
            "4 operations with parameters in a step, expected as many in each of 3 micro-batches");
  options.micro_batches = 1;
  EXPECT_EQ(times_of(import_text(text.text(), options)).size(), 4U);
}

// Writes a training step of two layers, "a" of 30 and 60 ns and "b" of 20 and 40 ns, as often as
// each is to pass; those of "b" that go beyond a pass come at the end.
std::string passing(int passes_of_a, int passes_of_b) {
  KinetoText text;
  text.range("ProfilerStep#0", 1, 0, 10'000);
  const auto pass = [&](const std::string& layer, std::int64_t start, std::int64_t time,
                        std::int64_t sequence) {
    text.range("layer:" + layer, 1, start, start + time)
        .op("aten::linear", 1, start, start + time, sequence)
        .node("AddmmBackward0", 1, start + 200, start + 200 + 2 * time, sequence);
  };
  for (int i = 0; i < passes_of_a; ++i) pass("a", 1000 * i, 30, 1 + 2 * i);
  for (int i = 0; i < passes_of_b; ++i) pass("b", 1000 * i + 100, 20, 2 + 2 * i);
  return text.text();
}

TEST(KinetoProfile, CountsMicroBatchesByTheRangesOfAStep) {
  const std::vector<LayerTimes> one = times_of(import_text(passing(1, 1)));
  ASSERT_EQ(one.front().forward, 30);
  const KinetoImport import = import_text(passing(4, 4));
  EXPECT_EQ(times_of(import), one);
  EXPECT_EQ(import.report.micro_batches, 4);
  EXPECT_EQ(import.report.notes.front(),
            "4 micro-batches a step, for so often each layer's range occurs in one");
  KinetoOptions options;
  options.micro_batches = 4;
  EXPECT_EQ(times_of(import_text(passing(4, 4), options)), one);
}

TEST(KinetoProfile, TakesARangeInsideOneOfItsLayerForOnePass) {
  const KinetoImport import = import_text(KinetoText()
                                              .range("layer:a", 1, 0, 100)
                                              .range("layer:a", 1, 10, 90)
                                              .op("aten::linear", 1, 20, 80, 1)
                                              .text());
  EXPECT_EQ(import.report.micro_batches, 1);
  EXPECT_EQ(times_of(import).front().forward, 100);
}

TEST(KinetoProfile, RefusesANumberOfMicroBatchesThatRangesContradict) {
  KinetoOptions options;
  options.micro_batches = 7;
  const std::string refusal = refusal_of_profile({passing(1, 1)}, options);
  EXPECT_EQ(refusal.substr(0, 77),
            "--micro-batches 7, expected 1, for so often each layer's range occurs in a st");
  EXPECT_EQ(refusal_of_profile({passing(4, 4), passing(2, 2)}),
            "each layer's range 2 times in a step, expected 4 times, as in the traces before");
}

TEST(KinetoProfile, SaysWhereRangesDoNotTellTheMicroBatches) {
  const KinetoImport import = import_text(passing(1, 2));
  EXPECT_EQ(times_of(import).back().forward, 2 * 20);
  EXPECT_EQ(import.report.micro_batches, 1);
  EXPECT_EQ(import.report.notes.front(),
            "layers' ranges do not occur equally often in each step, so they do not tell its "
            "micro-batches: taken as 1 (--micro-batches)");
  KinetoOptions options;
  options.micro_batches = 2;
  EXPECT_EQ(times_of(import_text(passing(1, 2), options)).back().forward, 20);
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
  EXPECT_EQ(refusal_of_profile({KinetoText().op("aten::mul", 1, 0, 9, 1).text()}),
            "neither ranges that name layers nor operations with parameters, expected a trace of "
            "training steps");
  KinetoOptions options;
  options.layer_prefix = "stage";
  options.needs_ranges = true;
  EXPECT_EQ(refusal_of_profile({linear}, options),
            "no range in the counted steps, expected ranges whose names begin with \"stage\"");
  EXPECT_EQ(refusal_of_profile({linear, conv}),
            "1 layers by operations, expected the 1 of the first trace by operations, or ranges "
            "that name layers in every trace");
  const std::string with_kernel =
      KinetoText().op("aten::linear", 1, 0, 9, 1).launch(1, 1, 1).kernel("k", 5, 5, 1).text();
  EXPECT_EQ(refusal_of_profile({linear, with_kernel}),
            "device work, expected the same as in the first trace");
  const std::string uneven = KinetoText()
                                 .range("ProfilerStep#1", 1, 0, 10)
                                 .range("ProfilerStep#2", 1, 10, 20)
                                 .op("aten::linear", 1, 11, 12, 1)
                                 .range("ProfilerStep#3", 1, 20, 30)
                                 .op("aten::conv2d", 1, 21, 22, 2)
                                 .text();
  EXPECT_EQ(
      refusal_of_profile({uneven}),
      "steps or micro-batches with other operations (\"conv2d_0\", layer 0 of 1), expected the "
      "1 layers of the first in each, or ranges that name layers");
}

TEST(KinetoProfile, RefusesMoreLayersThanAModelHas) {
  KinetoText operations;
  for (int i = 0; i <= 16'384; ++i) operations.op("aten::linear", 1, 3 * i, 3 * i + 1, i);
  EXPECT_EQ(refusal_of_profile({operations.text()}),
            "more than 16384 layers, expected at most 16384 layers in a step");
  KinetoText ranges;
  for (int i = 0; i <= 16'384; ++i) ranges.range("layer:" + std::to_string(i), 1, 3 * i, 3 * i + 1);
  EXPECT_EQ(refusal_of_profile({ranges.text()}),
            "more than 16384 layers, expected at most 16384 layers in a step");
}

TEST(KinetoProfile, RefusesManyStepsOfWhichMostHoldFewOfManyLayers) {
  KinetoText text;
  text.range("ProfilerStep#0", 1, 0, 1).range("ProfilerStep#1", 1, 10, 10'000);
  for (int i = 0; i < 1000; ++i)
    text.range("layer:" + std::to_string(i), 1, 3 * i + 10, 3 * i + 11);
  for (int i = 2; i < 1000; ++i) {
    text.range("ProfilerStep#" + std::to_string(i), 1, 10'000 * i, 10'000 * i + 9);
  }
  EXPECT_EQ(refusal_of_profile({text.text()}),
            "1000 layers and 999 steps, most of which hold few of the layers, expected the same "
            "layers in each step");
}

TEST(KinetoProfile, GivesEqualBytesForEqualTraces) {
  const std::string text = training({2, 1, 1}, "layer:", true);
  EXPECT_EQ(to_json(import_text(text).profile), to_json(import_text(text).profile));
}

}  // namespace
}  // namespace frazil
