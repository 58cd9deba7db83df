// Compares PipeTransformer's partitioner and compression rule with golden vectors: those of the
// released code, run on the models of the paper, and printed logs (ViT-B at K = 8 and 4, L_f = 6).

#include "planner/named/pipe_transformer_balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "planner/freezing/freeze_policy.h"
#include "planner/named/pipe_transformer_models.h"
#include "planner/partition/partition.h"

namespace frazil {
namespace {

using Counts = std::vector<int>;
using Sizes = std::vector<std::int64_t>;

std::vector<ParameterUnit> vit_b() { return list_vision_units(vit_b16(1000)); }
std::vector<ParameterUnit> vit_l() {
  return list_vision_units(
      {.transformer = {.layers = 24, .hidden = 1024, .intermediate = 4096}, .classes = 1000});
}
std::vector<ParameterUnit> vit_h() {
  return list_vision_units({.transformer = {.layers = 32, .hidden = 1280, .intermediate = 5120},
                            .patch = 14,
                            .classes = 1000});
}
std::vector<ParameterUnit> bert_base_qa() {
  return list_bert_units(BertShape{}, BertTask::kQuestionAnswering);
}
std::vector<ParameterUnit> bert_large_qa() {
  return list_bert_units(bert_large(), BertTask::kQuestionAnswering);
}

// Returns the parameters of the units that still train when the embedding and the first `frozen`
// layers are frozen; all units for 0.
Sizes active_parameters(const std::vector<ParameterUnit>& units, int frozen) {
  Sizes active;
  for (const ParameterUnit& unit : units) {
    if (frozen == 0 || unit.layer > frozen) active.push_back(unit.parameters);
  }
  return active;
}

Sizes all_of(const std::vector<ParameterUnit>& units) { return active_parameters(units, 0); }

std::int64_t sum_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

// Returns the largest stage over the mean stage, in thousandths, rounded.
std::int64_t imbalance(const Sizes& sizes, int stages) {
  return (2000 * largest_stage(sizes, stages) * stages / sum_of(sizes) + 1) / 2;
}

TEST(PipeTransformerModels, CountParametersFromTheShapesOfTheLayers) {
  const auto vit = all_of(vit_b());
  ASSERT_EQ(vit.size(), 27U);
  EXPECT_EQ(vit[0], 742'656);
  EXPECT_EQ(vit[1], 2'363'904);
  EXPECT_EQ(vit[2], 4'723'968);
  EXPECT_EQ(vit[25], 1'536);
  EXPECT_EQ(vit[26], 769'000);
  EXPECT_EQ(sum_of(vit), 86'567'656);

  const auto text = all_of(list_bert_units(BertShape{}, BertTask::kClassification));
  ASSERT_EQ(text.size(), 27U);
  EXPECT_EQ(text[0], 23'837'184);
  EXPECT_EQ(text[1], 2'363'904);
  EXPECT_EQ(text[2], 4'723'968);
  EXPECT_EQ(text[25], 590'592);
  EXPECT_EQ(text[26], 1'538);
  EXPECT_EQ(sum_of(text), 109'483'778);

  const auto base = all_of(bert_base_qa());
  EXPECT_EQ(base.size(), 26U);
  EXPECT_EQ(sum_of(base), 108'893'186);

  const auto large = all_of(bert_large_qa());
  ASSERT_EQ(large.size(), 50U);
  EXPECT_EQ(large[0], 31'782'912);
  EXPECT_EQ(large[1], 4'200'448);
  EXPECT_EQ(large[2], 8'395'776);
  EXPECT_EQ(large[49], 2'050);
  EXPECT_EQ(sum_of(large), 334'094'338);
}

struct GreedyRow {
  std::string model;
  Sizes sizes;
  int stages;
  Counts counts;
  std::int64_t imbalance;  // thousandths
};

TEST(PipeTransformerBalance, CutsAsTheReleasedCodeBeforeAnythingFreezes) {
  const std::vector<GreedyRow> rows{
      {"ViT-B/16", all_of(vit_b()), 8, {4, 2, 3, 3, 3, 3, 4, 5}, 1310},
      {"ViT-B/16", all_of(vit_b()), 4, {7, 6, 6, 8}, 1018},
      {"ViT-B/16", all_of(vit_b()), 2, {13, 14}, 1000},
      {"BERT-base QA", all_of(bert_base_qa()), 8, {0, 0, 0, 1, 6, 6, 6, 7}, 1751},
      {"BERT-base QA", all_of(bert_base_qa()), 4, {3, 7, 7, 9}, 1136},
      {"BERT-base QA", all_of(bert_base_qa()), 2, {12, 14}, 1132},
      {"BERT-large QA", all_of(bert_large_qa()), 8, {2, 6, 6, 6, 7, 7, 8, 8}, 1206},
      {"BERT-large QA", all_of(bert_large_qa()), 4, {10, 13, 13, 14}, 1034},
      {"BERT-large QA", all_of(bert_large_qa()), 2, {24, 26}, 1045},
      {"ViT-L/16", all_of(vit_l()), 8, {7, 6, 6, 6, 6, 6, 7, 7}, 1104},
      {"ViT-L/16", all_of(vit_l()), 4, {13, 12, 12, 14}, 1007},
      {"ViT-L/16", all_of(vit_l()), 2, {25, 26}, 1000},
  };
  for (const GreedyRow& row : rows) {
    SCOPED_TRACE(row.model + ", K = " + std::to_string(row.stages));
    EXPECT_EQ(balance_greedily(row.sizes, row.stages), row.counts);
    EXPECT_EQ(imbalance(row.sizes, row.stages), row.imbalance);
  }
}

TEST(PipeTransformerBalance, LeavesStagesEmptyBeforeALargeEmbedding) {
  const auto sizes = all_of(list_bert_units(BertShape{}, BertTask::kClassification));
  EXPECT_EQ(balance_greedily(sizes, 8), (Counts{0, 0, 0, 1, 6, 6, 6, 8}));
}

TEST(PipeTransformerBalance, DependsOnTheUnitOfSize) {
  const auto sizes = all_of(vit_b());
  EXPECT_EQ(balance_greedily(sizes, 8, {.unit_of_size = 1e-9}), (Counts{4, 2, 2, 3, 3, 3, 4, 6}));
  EXPECT_EQ(balance_greedily(sizes, 8, {.unit_of_size = 1e-6}), (Counts{4, 2, 3, 3, 3, 3, 4, 5}));
  EXPECT_EQ(balance_greedily(sizes, 8, {.unit_of_size = 1}), (Counts{27, 0, 0, 0, 0, 0, 0, 0}));
}

// Stage 0 holds the frozen units and reaches the same limit with a sixth of their size, so it takes
// more of the other units; the released code never passes a frozen unit.
TEST(PipeTransformerBalance, CountsFrozenUnitsWithLambdaInTheirStage) {
  const Sizes equal(12, 1'000'000);
  EXPECT_EQ(balance_greedily(equal, 4), (Counts{2, 3, 3, 4}));
  // The limit is 12 / 4 = 3 units, the discount 7 (1 - 1/6) = 5.83: n - 5.83 < 3 for n = 8.
  EXPECT_EQ(balance_greedily(equal, 4, {.frozen_units = 7}).front(), 8);
  EXPECT_EQ(balance_greedily(equal, 4, {.frozen_units = 7, .lambda_frozen = 0.0}).front(), 9);
  EXPECT_EQ(balance_greedily(equal, 4, {.frozen_units = 7, .lambda_frozen = 1.0}),
            balance_greedily(equal, 4));
}

std::optional<std::int64_t> best_largest(const Sizes& sizes, int stages) {
  ChainCosts costs;
  for (const std::int64_t size : sizes) costs.layer.emplace_back(size);
  costs.boundary.assign(sizes.size() - 1, Duration{0});
  costs.time_ppm.assign(static_cast<std::size_t>(stages), 1'000'000);
  const auto cut = partition_into(costs, stages);
  if (!cut) return std::nullopt;
  return cut->load.count();
}

TEST(PipeTransformerBalance, IsNeverBetterThanTheExactPartition) {
  EXPECT_EQ(largest_stage(all_of(vit_b()), 8), 14'175'744);
  EXPECT_EQ(best_largest(all_of(vit_b()), 8), 12'582'376);
  EXPECT_EQ(largest_stage(all_of(bert_base_qa()), 8), 23'837'184);
  EXPECT_EQ(best_largest(all_of(bert_base_qa()), 8), 23'837'184);
  EXPECT_EQ(largest_stage(all_of(bert_large_qa()), 8), 50'384'896);
  EXPECT_EQ(best_largest(all_of(bert_large_qa()), 8), 46'184'448);
  EXPECT_EQ(largest_stage(all_of(vit_l()), 8), 41'989'120);
  EXPECT_EQ(best_largest(all_of(vit_l()), 8), 38'815'720);

  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed 11, round " + std::to_string(round));
    Sizes sizes(2 + random() % 12);
    for (std::int64_t& size : sizes) size = 1 + static_cast<std::int64_t>(random() % 9'000'000);
    const int stages = 1 + static_cast<int>(random() % sizes.size());
    const Counts counts = balance_greedily(sizes, stages);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), sizes.size());
    EXPECT_GE(largest_stage(sizes, stages), *best_largest(sizes, stages));
  }
}

// Returns the first numbers of frozen layers at which a pipeline that began with 8 stages has 4, 2
// and 1.
std::vector<int> first_frozen(const std::vector<ParameterUnit>& units, int layers) {
  const std::int64_t reference = largest_stage(active_parameters(units, 0), 8);
  std::map<int, int> first;
  for (int frozen = 0; frozen <= layers; ++frozen) {
    const int length = compress_length(active_parameters(units, frozen), 8, reference);
    for (int k = length; k < 8; k *= 2) first.try_emplace(k, frozen);
  }
  return {first.at(4), first.at(2), first.at(1)};
}

TEST(PipeTransformerCompression, HalvesAtTheRecordedNumbersOfFrozenLayers) {
  EXPECT_EQ(first_frozen(vit_b(), 12), (std::vector<int>{5, 9, 11}));
  EXPECT_EQ(first_frozen(bert_base_qa(), 12), (std::vector<int>{1, 6, 9}));
  EXPECT_EQ(first_frozen(bert_large_qa(), 24), (std::vector<int>{9, 17, 21}));
  EXPECT_EQ(first_frozen(vit_l(), 24), (std::vector<int>{12, 18, 21}));
  EXPECT_EQ(first_frozen(vit_h(), 32), (std::vector<int>{16, 24, 28}));
}

TEST(PipeTransformerCompression, TurnsOnEqualSums) {
  // ViT-B with 5 frozen layers is as large as at the start, which the printed < refuses.
  const std::int64_t reference = largest_stage(all_of(vit_b()), 8);
  const Sizes active = active_parameters(vit_b(), 5);
  EXPECT_EQ(largest_stage(active, 4), reference);
  EXPECT_EQ(compress_length(active, 8, reference, CompressionRule::kNotLarger), 4);
  EXPECT_EQ(compress_length(active, 8, reference, CompressionRule::kSmaller), 8);
  // BERT-large with 8 frozen layers misses by 0.004 %.
  const Sizes large = active_parameters(bert_large_qa(), 8);
  EXPECT_EQ(largest_stage(large, 4), 50'386'946);
  EXPECT_EQ(largest_stage(all_of(bert_large_qa()), 8), 50'384'896);
}

TEST(PipeTransformerCompression, MayHalveSeveralTimesAtOnce) {
  const std::int64_t reference = largest_stage(all_of(vit_b()), 8);
  EXPECT_EQ(compress_length(active_parameters(vit_b(), 11), 8, reference), 1);
  EXPECT_EQ(compress_length(active_parameters(vit_b(), 0), 2, reference), 2);
}

struct StageRow {
  int frozen;
  int length;
  Counts counts;
  Sizes sizes;
};

void expect_stages(const std::vector<ParameterUnit>& units, int first_length,
                   const std::vector<StageRow>& rows) {
  const std::int64_t reference = largest_stage(active_parameters(units, 0), first_length);
  for (const StageRow& row : rows) {
    SCOPED_TRACE("L_f = " + std::to_string(row.frozen));
    const Sizes active = active_parameters(units, row.frozen);
    EXPECT_EQ(compress_length(active, first_length, reference), row.length);
    const Counts counts = balance_greedily(active, row.length);
    EXPECT_EQ(counts, row.counts);
    EXPECT_EQ(stage_parameters(active, counts), row.sizes);
  }
}

TEST(PipeTransformerCompression, CutsWhatIsLeftAsTheReleasedCode) {
  expect_stages(vit_b(), 8,
                {{5, 4, {3, 4, 4, 5}, {9'451'776, 14'175'744, 14'175'744, 12'582'376}},
                 {6, 4, {3, 3, 3, 5}, {9'451'776, 11'811'840, 9'451'776, 12'582'376}},
                 {7, 4, {3, 2, 2, 5}, {9'451'776, 7'087'872, 7'087'872, 12'582'376}},
                 {8, 4, {2, 2, 2, 4}, {7'087'872, 7'087'872, 7'087'872, 7'858'408}},
                 {9, 2, {3, 5}, {9'451'776, 12'582'376}},
                 {10, 2, {2, 4}, {7'087'872, 7'858'408}}});
  expect_stages(bert_large_qa(), 8,
                {{9, 4, {7, 8, 8, 8}, {41'989'120, 50'384'896, 50'384'896, 46'186'498}},
                 {12, 4, {6, 6, 6, 7}, {37'788'672, 37'788'672, 37'788'672, 37'790'722}},
                 {16, 4, {4, 4, 4, 5}, {25'192'448, 25'192'448, 25'192'448, 25'194'498}},
                 {17, 2, {7, 8}, {41'989'120, 46'186'498}},
                 {20, 2, {4, 5}, {25'192'448, 25'194'498}}});
}

TEST(PipeTransformerCompression, AgreesWithALogThatBeganWithFourStages) {
  const auto units = list_vision_units(vit_b16(10));
  EXPECT_EQ(largest_stage(all_of(units), 4), 22'006'272);
  expect_stages(units, 4, {{7, 2, {5, 7}, {16'539'648, 18'908'938}}});
}

TEST(PipeTransformerCompression, FollowsTheFreezeScheduleEpochByEpoch) {
  using Row = std::vector<std::pair<int, int>>;  // (L_f, K)
  const std::vector<std::pair<double, Row>> rows{
      {1.0 / 5,
       {{0, 8}, {3, 8}, {5, 4}, {6, 4}, {8, 4}, {9, 2}, {9, 2}, {10, 2}, {10, 2}, {11, 1}}},
      {1.0 / 4,
       {{0, 8}, {3, 8}, {6, 4}, {7, 4}, {9, 2}, {10, 2}, {10, 2}, {11, 1}, {11, 1}, {12, 1}}},
      {1.0 / 3,
       {{0, 8}, {4, 8}, {7, 4}, {9, 2}, {10, 2}, {11, 1}, {11, 1}, {12, 1}, {12, 1}, {12, 1}}},
      {2.0 / 5,
       {{0, 8}, {5, 4}, {8, 4}, {10, 2}, {11, 1}, {12, 1}, {12, 1}, {12, 1}, {12, 1}, {12, 1}}},
      {1.0 / 2,
       {{0, 8}, {6, 4}, {9, 2}, {11, 1}, {12, 1}, {12, 1}, {12, 1}, {12, 1}, {12, 1}, {12, 1}}},
  };
  const std::int64_t reference = largest_stage(all_of(vit_b()), 8);
  for (const auto& [alpha, expected] : rows) {
    SCOPED_TRACE("alpha " + std::to_string(alpha));
    Row row;
    int length = 8;
    for (int epoch = 0; epoch < 10; ++epoch) {
      const int frozen = alpha_frozen_layers(12, alpha, epoch);
      length = compress_length(active_parameters(vit_b(), frozen), length, reference);
      row.emplace_back(frozen, length);
    }
    EXPECT_EQ(row, expected);
  }
}

// Returns the fewest stages of any contiguous cut that may_compress allows.
int shortest_length(const Sizes& active, std::int64_t reference, CompressionRule rule) {
  int stages = 1;
  while (!may_compress(*best_largest(active, stages), reference, rule)) ++stages;
  return stages;
}

std::vector<int> shortest_lengths(const std::vector<ParameterUnit>& units, int layers,
                                  CompressionRule rule) {
  const std::int64_t reference = largest_stage(active_parameters(units, 0), 8);
  std::vector<int> lengths;
  for (int frozen = 0; frozen <= layers; ++frozen) {
    lengths.push_back(shortest_length(active_parameters(units, frozen), reference, rule));
  }
  return lengths;
}

// Expands {{0, 7}, {1, 6}, ...} (7 from 0 on, 6 from 1 on) to a list over 0..layers.
std::vector<int> steps_down(const std::map<int, int>& length_from, int layers) {
  std::vector<int> lengths;
  for (int frozen = 0; frozen <= layers; ++frozen) {
    lengths.push_back(std::prev(length_from.upper_bound(frozen))->second);
  }
  return lengths;
}

TEST(PipeTransformerCompression, AnyLengthWouldBeShorterThanHalving) {
  using Rule = CompressionRule;
  EXPECT_EQ(shortest_lengths(vit_b(), 12, Rule::kNotLarger),
            (std::vector<int>{7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1}));
  EXPECT_EQ(shortest_lengths(vit_b(), 12, Rule::kSmaller),
            (std::vector<int>{8, 8, 7, 6, 6, 5, 4, 4, 3, 2, 2, 1, 1}));
  EXPECT_EQ(shortest_lengths(bert_large_qa(), 24, Rule::kNotLarger),
            steps_down({{0, 7}, {1, 6}, {5, 5}, {9, 4}, {13, 3}, {17, 2}, {21, 1}}, 24));
  EXPECT_EQ(shortest_lengths(bert_large_qa(), 24, Rule::kSmaller),
            steps_down({{0, 8}, {1, 7}, {3, 6}, {7, 5}, {10, 4}, {14, 3}, {17, 2}, {21, 1}}, 24));
}

TEST(PipeTransformerCompression, TakesSixteenMicroBatchesButWithOneStage) {
  EXPECT_EQ(count_micro_batches(8), 16);
  EXPECT_EQ(count_micro_batches(4), 16);
  EXPECT_EQ(count_micro_batches(2), 16);
  EXPECT_EQ(count_micro_batches(1), 4);
}

}  // namespace
}  // namespace frazil
