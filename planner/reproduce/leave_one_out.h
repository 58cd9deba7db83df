#pragma once
// Fits a few constants such that no case influences its own prediction. Each constant is chosen
// from a short list of values; a fit takes the values with the smallest sum of |predicted /
// measured - 1| over the cases that it may see. Leave-one-out cross-validation refits all constants
// once per case, without that case (Stone 1974, JRSS B 36(2)).

#include <cstddef>
#include <functional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// A choice holds for each constant a position in the constant's list of values.
using Choice = std::vector<std::size_t>;

struct FittedModel {
  std::vector<std::size_t> list_sizes;  // by constant, at least 1
  Choice start;                         // where every fit begins: the constants as measured
  // Returns the predicted time of every case. Called once per choice.
  std::function<std::vector<Duration>(const Choice&)> predict;
};

struct CrossValidation {
  std::vector<Choice> choices;      // by case: fitted to all cases but this one
  std::vector<Duration> predicted;  // by case, with its choice
  Choice from_all;                  // fitted to all cases
  std::vector<Duration> in_sample;  // by case, predicted with from_all
  std::size_t evaluated = 0;        // choices for which predict was called
};

// Fits by a local search from `start`. It tries every value of each constant alone; when none is
// better, it moves pairs of constants by one or two places in either direction; it ends when
// neither is better. Of equal choices the first stays. Requires: one measured time above 0 per
// case; at least two cases.
CrossValidation leave_one_out(const FittedModel& model, const std::vector<Duration>& measured);

}  // namespace frazil
