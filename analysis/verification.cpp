#include "analysis/verification.h"

#include <fmt/format.h>

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

// Says why so many blocks tell nothing; "" if they are enough.
std::string tell_few(std::size_t kept, std::size_t planned) {
  const std::size_t needed = std::max(kFewestBlocks, (planned + 1) / 2);
  if (kept >= needed) return "";
  return fmt::format("{} of {} blocks count, and {} are needed", kept, planned, needed);
}

std::string tell_unsteady(const std::vector<VerifiedRatio>& ratios, double bar) {
  std::string names;
  for (const VerifiedRatio& row : ratios) {
    if (row.verdict == Verdict::kInconclusive) names += (names.empty() ? "" : ", ") + row.name;
  }
  return fmt::format(
      "measured too unsteadily: intervals lie on both sides of the bar of {:.0f} %, of {}",
      100 * bar, names);
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
  conclusion.reason = tell_few(kept, static_cast<std::size_t>(rules.blocks));
  if (!conclusion.reason.empty()) return conclusion;
  conclusion.verdict = overall(conclusion.ratios);
  if (conclusion.verdict == Verdict::kInconclusive) {
    conclusion.reason = tell_unsteady(conclusion.ratios, rules.bar);
  }
  return conclusion;
}

std::string tell_verdict(Verdict verdict, const std::string& reason) {
  const std::string name(verdict_name(verdict));
  return reason.empty() ? name + "\n" : fmt::format("{}: {}\n", name, reason);
}

}  // namespace frazil
