#include "traces/kineto/tied_weights.h"

#include <gtest/gtest.h>

#include "tests/traces/kineto/kineto_import.h"

namespace frazil {
namespace {

std::string floats(const std::string& dims, bool has_shapes) {
  return has_shapes ? R"("Input type": ["float"], "Input Dims": [)" + dims + "], " : "";
}

// Writes a step of an embedding of 30 words, a linear layer and a head that reads the embedding's
// weight, transposed: its gradient is accumulated behind the embedding's.
std::string tied_step(bool has_shapes) {
  KinetoText text;
  text.range("ProfilerStep#0", 1, 0, 1000)
      .range("layer:embed", 1, 100, 200)
      .op("aten::embedding", 1, 110, 190, 10)
      .range("layer:mid", 1, 200, 300)
      .op("aten::linear", 1, 210, 290, 11)
      .range("layer:head", 1, 300, 400)
      .op("aten::linear", 1, 310, 390, 13);
  text.node("MmBackward0", 1, 500, 550, 14, 1, floats("[8, 30]", has_shapes))
      .node("TBackward0", 1, 550, 560, 13, 1, floats("[4, 30]", has_shapes))
      .node("MmBackward0", 1, 560, 600, 12, 1, floats("[8, 4]", has_shapes))
      .node("TBackward0", 1, 600, 610, 11, 1, floats("[4, 4]", has_shapes))
      .accumulate(1, 610, 620, floats("[4, 4]", has_shapes))
      .node("EmbeddingBackward0", 1, 620, 660, 10, 1, floats("[8, 4]", has_shapes))
      .accumulate(1, 660, 670, floats("[30, 4]", has_shapes));
  return text.text();
}

TEST(TiedWeights, OfAHeadAreThoseOfTheEmbeddingWhoseGradientHasAsManyBytes) {
  const KinetoImport import = import_text(tied_step(true));
  std::vector<std::int64_t> parameters;
  for (const Layer& layer : import.profile.layers) parameters.push_back(layer.parameters.count);
  EXPECT_EQ(parameters, (std::vector<std::int64_t>{480, 64, 480}));
  const std::vector<TiedParameter> expected = {
      {"weight of layer:embed", Bytes{480}, {LayerId{0}, LayerId{2}}}};
  EXPECT_EQ(import.profile.tied, expected);
  EXPECT_EQ(import.report.notes.front(),
            "the weight of layer:head (480 B) is tied with layer:embed");
  for (const Doubt& doubt : import.profile.doubts) {
    EXPECT_NE(doubt.fact, DoubtedFact::kParameters) << doubt.reason;
  }
}

TEST(TiedWeights, AreNotFoundWithoutShapes) {
  const KinetoImport import = import_text(tied_step(false));
  EXPECT_TRUE(import.profile.tied.empty());
}

TEST(TiedWeights, AreLeftOpenWhereTwoLayersHaveAWeightOfTheseBytes) {
  using Found = std::vector<std::optional<std::size_t>>;
  EXPECT_EQ(find_tied_layers({{.largest = 480}, {.largest = 64}, {.unaccumulated = 480}}),
            (Found{{}, {}, 0}));
  EXPECT_EQ(find_tied_layers({{.largest = 480}, {.largest = 480}, {.unaccumulated = 480}}),
            (Found{{}, {}, {}}));
  EXPECT_EQ(find_tied_layers({{.largest = 64, .unaccumulated = 64}}), Found(1));
}

}  // namespace
}  // namespace frazil
