#include "analysis/verification.h"

#include <algorithm>

namespace frazil {
namespace {

constexpr std::size_t kFewestBlocks = 6;  // an interval over fewer says nothing

Verdict overall(const std::vector<VerifiedRatio>& ratios) {
  const auto any = [&](Verdict verdict) {
    return std::any_of(ratios.begin(), ratios.end(),
                       [&](const VerifiedRatio& row) { return row.verdict == verdict; });
  };
  if (any(Verdict::kFail)) return Verdict::kFail;
  return any(Verdict::kInconclusive) ? Verdict::kInconclusive : Verdict::kPass;
}

}  // namespace

Conclusion conclude(const std::vector<BlockRatios>& compared, const VerificationRules& rules) {
  Conclusion conclusion;
  const double level = 1 - 0.05 / static_cast<double>(std::max<std::size_t>(compared.size(), 1));
  for (const BlockRatios& thing : compared) {
    if (thing.ratios.empty()) continue;
    VerifiedRatio row{thing.name, bootstrap_ratio(thing.ratios, rules.seed, level), {}};
    row.verdict = judge(row.ratio, rules.bar);
    conclusion.ratios.push_back(row);
  }
  const std::size_t kept = compared.empty() ? 0 : compared.front().ratios.size();
  const bool enough = kept >= kFewestBlocks && 2 * kept >= static_cast<std::size_t>(rules.blocks);
  if (enough) conclusion.verdict = overall(conclusion.ratios);
  return conclusion;
}

}  // namespace frazil
