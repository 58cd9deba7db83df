#include "planner/answers/ranking_counts.h"

namespace frazil {
namespace {

// True if no memory would help, because an interpreter refuses the candidate.
bool cannot_be_made(const Candidate& candidate) {
  return candidate.infeasible && candidate.infeasible->needed <= candidate.infeasible->available;
}

std::int64_t& tally(RankingCounts& counts, Rejection::Why why) {
  switch (why) {
    case Rejection::Why::kBound:
      return counts.bounded;
    case Rejection::Why::kSlower:
      return counts.fit;
    case Rejection::Why::kMemory:
      return counts.too_large;
    case Rejection::Why::kRefused:
      return counts.not_made;
  }
  return counts.bounded;
}

}  // namespace

RankingCounts count_candidates(const Ranking& ranking) {
  RankingCounts counts;
  for (const Candidate& candidate : ranking.candidates) {
    ++(cannot_be_made(candidate)          ? counts.not_made
       : candidate.infeasible.has_value() ? counts.too_large
                                          : counts.fit);
  }
  for (const RejectedShapes& rejected : ranking.rejected) {
    tally(counts, rejected.rejection.why) += rejected.candidates;
  }
  return counts;
}

}  // namespace frazil
