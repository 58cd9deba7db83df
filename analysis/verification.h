#pragma once
// Judges blocks of predicted / measured ratios: one row per thing compared, one verdict for all.

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/ratio_interval.h"

namespace frazil {

// The ratios of one thing, one per block that was kept.
struct BlockRatios {
  std::string name;  // "step", or a layer's
  std::vector<double> ratios;
};

struct VerifiedRatio {
  std::string name;
  RatioInterval ratio;
  Verdict verdict = Verdict::kInconclusive;
};

struct VerificationRules {
  double bar = 0.1;  // largest accepted deviation
  std::uint64_t seed = 1;
  int blocks = 0;  // planned number of blocks
};

struct Conclusion {
  std::vector<VerifiedRatio> ratios;  // in the order given, without those that have no block
  // FAIL if any ratio fails, else INCONCLUSIVE if any is, else PASS. INCONCLUSIVE, whatever the
  // ratios, if the first ratio has fewer than half of the blocks or fewer than six.
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;  // of INCONCLUSIVE, in a clause; else ""
};

// Judges all things compared; their intervals are at 95 % together (Bonferroni).
Conclusion conclude(const std::vector<BlockRatios>& compared, const VerificationRules& rules);

// Returns the last line of an answer: "PASS", or "INCONCLUSIVE: " with the reason.
std::string tell_verdict(Verdict verdict, const std::string& reason);

}  // namespace frazil
