#pragma once
// Cuts a chain of units into stages and decides the length of the pipeline, as PipeTransformer does
// (He et al. 2021, Algorithm 1). Sizes are numbers of parameters.

#include <cstdint>
#include <vector>

namespace frazil {

struct BalanceOptions {
  // Sizes are unit_of_size x parameters. The mean and the variance below have different units, so
  // the cut depends on this scale; the released code counts millions.
  double unit_of_size = 1e-6;
  // Frozen units at the front of the chain, which stage 0 takes and counts with lambda_frozen x
  // their size: the published form. The released code takes frozen units out of the chain first and
  // so never uses its lambda: that is frozen_units = 0.
  int frozen_units = 0;
  double lambda_frozen = 1.0 / 6;
};
// Cuts the chain into `stages` stages, greedily from front to back, and returns the number of units
// of each stage, which may be 0. Stage k of K takes the next unit i while
//   size_k + S_i < mean + variance,   mean = rest / (K - k), variance = var(rest units) / (K - k)
// where size_k is what stage k has taken so far, S_i the size of unit i, the rest is what stages
// before k have left, and var is the population variance. The last stage takes all that is left.
// Requires: stages >= 1.
std::vector<int> balance_greedily(const std::vector<std::int64_t>& parameters, int stages,
                                  const BalanceOptions& options = {});

// Returns the parameters of each stage, given its number of units.
std::vector<std::int64_t> stage_parameters(const std::vector<std::int64_t>& parameters,
                                           const std::vector<int>& counts);
// Returns the parameters of the largest stage of the greedy cut.
std::int64_t largest_stage(const std::vector<std::int64_t>& parameters, int stages);

// When a shorter pipeline is taken: when its largest stage is not larger than `reference`, the
// largest stage at the start (the paper's equation and the code), or when it is smaller (Algorithm
// 1 as printed). Equal sums occur (ViT-B at 5 frozen layers), so sums are exact integers.
enum class CompressionRule : std::uint8_t { kNotLarger, kSmaller };
bool may_compress(std::int64_t largest, std::int64_t reference, CompressionRule rule);

// Halves `length` while may_compress allows the greedy cut of the active units into half as many
// stages, and returns the result. A pipeline never grows back. Requires: length >= 1.
int compress_length(const std::vector<std::int64_t>& active, int length, std::int64_t reference,
                    CompressionRule rule = CompressionRule::kNotLarger);

// Returns the micro-batches of a pipeline of length K by the released table: 2K for K = 8, 4K for
// K = 4, 8K for K = 2, else 4K.
int count_micro_batches(int length);

}  // namespace frazil
