#include "analysis/ablation/control_origin.h"

#include <fmt/format.h>

#include <algorithm>

namespace frazil {
namespace {

std::string list_masks(const PairResult& result) {
  std::string text;
  for (const PairPhase& phase : result.phases) {
    text += fmt::format("{} {}\n", phase.first_step, phase.mask);
  }
  return text + std::to_string(result.steps);
}

}  // namespace

const PairResult* find_result(const std::vector<PairResult>& results, const ArmSeed& pair) {
  const auto found = std::find_if(results.begin(), results.end(),
                                  [&](const PairResult& result) { return result.pair == pair; });
  return found == results.end() ? nullptr : &*found;
}

std::optional<std::string> find_origin(const ArmSeed& pair,
                                       const std::vector<PairResult>& results) {
  std::string text;
  for (const Arm need : needs_of(pair.arm)) {
    const PairResult* const origin = find_result(results, {need, pair.seed});
    if (origin == nullptr) return std::nullopt;
    text += pair.arm == Arm::kShorter
                ? fmt::format("{} steps in {} ns\n", origin->steps, origin->wall.count())
                : list_masks(*origin);
  }
  return text.empty() ? text : hash_of(text);
}

std::size_t drop_orphans(std::vector<PairResult>& results) {
  const std::vector<PairResult> all = results;
  const auto orphans = std::remove_if(
      results.begin(), results.end(),
      [&](const PairResult& result) { return find_origin(result.pair, all) != result.made_from; });
  const auto dropped = static_cast<std::size_t>(results.end() - orphans);
  results.erase(orphans, results.end());
  return dropped;
}

}  // namespace frazil
