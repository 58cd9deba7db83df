#pragma once
// How PipeTransformer (He et al. 2021, Algorithm 1) cuts a chain of units into stages and decides
// how long its pipeline is. Sizes are numbers of parameters.

#include <cstdint>
#include <vector>

namespace frazil {

// Greedy cut into `stages` stages, front to back. Stage k takes units while
//   size_k + S_i < mean + variance,   mean = rest / (K - k), variance = var(rest units) / (K - k)
// (population variance; rest: what no stage before k has, less what k has taken), and the last
// stage takes all that is left. Sizes are `unit_of_size` times the parameters: mean and variance
// have different units, so the answer depends on it; the released code counts millions.
// With `frozen_units` > 0, the published form: stage 0 begins with them, and they count there with
// lambda_frozen of their size. The released code takes them out of the chain first, so that its
// own lambda is dead: frozen_units is 0.
struct BalanceOptions {
  double unit_of_size = 1e-6;
  int frozen_units = 0;
  double lambda_frozen = 1.0 / 6;
};
// Units of each stage; a stage may have none. Requires: stages >= 1.
std::vector<int> balance_greedily(const std::vector<std::int64_t>& parameters, int stages,
                                  const BalanceOptions& options = {});

// Parameters of each stage.
std::vector<std::int64_t> stage_parameters(const std::vector<std::int64_t>& parameters,
                                           const std::vector<int>& counts);
std::int64_t largest_stage(const std::vector<std::int64_t>& parameters, int stages);

// A shorter pipeline is taken when its largest stage is not larger than `reference`, the largest at
// the start (the equation and the code), or when it is smaller (as Algorithm 1 is printed). Equal
// sums decide (ViT-B at 5 frozen layers), so they are of integers.
enum class CompressionRule : std::uint8_t { kNotLarger, kSmaller };
bool may_compress(std::int64_t largest, std::int64_t reference, CompressionRule rule);

// Halves `length` while the greedy cut of what is active into half as many stages may be taken.
// It never grows back. Requires: length >= 1.
int compress_length(const std::vector<std::int64_t>& active, int length, std::int64_t reference,
                    CompressionRule rule = CompressionRule::kNotLarger);

// Fewest stages of any contiguous cut that may be taken: what halving leaves on the table.
// Requires: every unit may be a stage.
int shortest_length(const std::vector<std::int64_t>& active, std::int64_t reference,
                    CompressionRule rule);

// Micro-batches of a pipeline: the released table, 2K for K = 8, 4K for 4, 8K for 2, else 4K.
int count_micro_batches(int length);

}  // namespace frazil
