#include "planner/named/pipe_transformer_balance.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "profiles/error.h"

namespace frazil {
namespace {

// Returns the variance of the sizes from `first` on; 0 when there are none.
double population_variance(const std::vector<double>& sizes, std::size_t first) {
  if (first == sizes.size()) return 0;
  const auto begin = sizes.begin() + static_cast<std::ptrdiff_t>(first);
  const auto count = static_cast<double>(sizes.size() - first);
  const double mean = std::accumulate(begin, sizes.end(), 0.0) / count;
  double squares = 0;
  for (auto size = begin; size != sizes.end(); ++size) squares += (*size - mean) * (*size - mean);
  return squares / count;
}

}  // namespace

std::vector<int> balance_greedily(const std::vector<std::int64_t>& parameters, int stages,
                                  const BalanceOptions& options) {
  ENSURE(stages >= 1, "a pipeline has a stage");
  std::vector<double> sizes;
  for (const std::int64_t count : parameters) {
    sizes.push_back(static_cast<double>(count) * options.unit_of_size);
  }
  double rest = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  double frozen = 0;
  for (int unit = 0; unit < options.frozen_units; ++unit) {
    frozen += sizes.at(static_cast<std::size_t>(unit));
  }
  std::vector<int> counts(static_cast<std::size_t>(stages), 0);
  std::size_t next = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const double left = stages - stage;
    const double most = rest / left + population_variance(sizes, next) / left;
    const double discount = stage == 0 ? frozen * (1 - options.lambda_frozen) : 0;
    const bool takes_all = stage + 1 == stages;
    for (double held = 0; next < sizes.size(); ++next) {
      if (!takes_all && held + sizes[next] - discount >= most) break;
      held += sizes[next];
      rest -= sizes[next];
      ++counts[static_cast<std::size_t>(stage)];
    }
  }
  return counts;
}

std::vector<std::int64_t> stage_parameters(const std::vector<std::int64_t>& parameters,
                                           const std::vector<int>& counts) {
  std::vector<std::int64_t> sums;
  auto unit = parameters.begin();
  for (const int count : counts) {
    sums.push_back(std::accumulate(unit, unit + count, std::int64_t{0}));
    unit += count;
  }
  return sums;
}

std::int64_t largest_stage(const std::vector<std::int64_t>& parameters, int stages) {
  const auto sums = stage_parameters(parameters, balance_greedily(parameters, stages));
  return *std::max_element(sums.begin(), sums.end());
}

bool may_compress(std::int64_t largest, std::int64_t reference, CompressionRule rule) {
  switch (rule) {
    case CompressionRule::kNotLarger:
      return largest <= reference;
    case CompressionRule::kSmaller:
      return largest < reference;
  }
  return false;
}

int compress_length(const std::vector<std::int64_t>& active, int length, std::int64_t reference,
                    CompressionRule rule) {
  ENSURE(length >= 1, "a pipeline has a stage");
  while (length >= 2 && may_compress(largest_stage(active, length / 2), reference, rule)) {
    length /= 2;
  }
  return length;
}

int count_micro_batches(int length) {
  switch (length) {
    case 8:
      return 2 * length;
    case 2:
      return 8 * length;
    default:
      return 4 * length;
  }
}

}  // namespace frazil
