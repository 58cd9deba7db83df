#include "analysis/ablation/predicted_order.h"

#include <optional>

#include "analysis/ablation/control_origin.h"
#include "analysis/ablation/verdict.h"

namespace frazil {
namespace {

// Returns the time of one arm over that of another; none without a seed that both have.
std::optional<RatioEstimate> compare(const std::vector<PairResult>& results, Arm one, Arm other) {
  std::vector<double> ratios;
  for (const PairResult& result : results) {
    if (result.pair.arm != one) continue;
    const PairResult* const beside = find_result(results, {other, result.pair.seed});
    if (beside == nullptr) continue;
    ratios.push_back(static_cast<double>(result.wall.count()) /
                     static_cast<double>(beside->wall.count()));
  }
  if (ratios.empty()) return std::nullopt;
  return estimate_ratio(ratios);
}

}  // namespace

PredictedOrder compare_order(const std::vector<PairResult>& results,
                             const PredictedRuns& predicted) {
  PredictedOrder order;
  for (auto one = predicted.begin(); one != predicted.end(); ++one) {
    if (one->first == Arm::kShorter) continue;
    for (auto other = std::next(one); other != predicted.end(); ++other) {
      if (other->first == Arm::kShorter) continue;
      const auto ratio = compare(results, one->first, other->first);
      if (!ratio || !ratio->interval) continue;
      ++order.compared;
      const bool is_slower = ratio->interval->low > 1;
      if (!is_slower && ratio->interval->high >= 1) continue;
      const auto& [faster, slower] = is_slower ? std::pair(*other, *one) : std::pair(*one, *other);
      ++order.pairs;
      if (faster.second.total() < slower.second.total()) {
        ++order.right;
      } else {
        order.wrong.push_back(std::string(facts_of(faster.first).name) + ", " +
                              std::string(facts_of(slower.first).name));
      }
    }
  }
  return order;
}

}  // namespace frazil
