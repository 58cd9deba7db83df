#pragma once
// Compares the order in which the arms of an ablation were predicted to end with the measured one.
// Two arms were measured to differ if the 95 % interval of the ratio of their times, paired by
// seed, leaves out 1; what lies within the noise has no order. `shorter` is left out: its length
// follows from the measured time of `all`, so that its time is no prediction of its own.

#include <string>
#include <vector>

#include "analysis/ablation/pair_result.h"
#include "analysis/ablation/predict/predict_pairs.h"

namespace frazil {

struct PredictedOrder {
  int compared = 0;  // pairs of arms that are predicted and ran under two seeds or more
  int pairs = 0;     // of these, arms that were measured to differ
  int right = 0;     // of these, in the predicted order
  std::vector<std::string> wrong;  // "pipe, freeze": measured to be the faster one first
};

PredictedOrder compare_order(const std::vector<PairResult>& results,
                             const PredictedRuns& predicted);

}  // namespace frazil
