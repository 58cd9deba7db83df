#pragma once
// Fits a few constants such that no case influences its own prediction. Each constant is chosen
// from a short list of values; a fit takes the values with the smallest sum of |predicted /
// measured - 1| over the cases that it may see. Leave-one-out cross-validation refits all constants
// once per case, without that case (Stone 1974, JRSS B 36(2)); cases of one group may be left out
// together, to see how constants carry to a group that no fit has seen. Of several forms of a model
// one is chosen by the same means: for each group the form that predicts the other groups best when
// each of these is left out too, so that a group has no say in the form of its own prediction.

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
// The same with all cases of a group left out together. Requires: a group per case; two groups.
CrossValidation leave_groups_out(const FittedModel& model, const std::vector<Duration>& measured,
                                 const std::vector<int>& groups);

struct ChosenForms {
  std::vector<std::size_t> forms;   // by case: which model, of equally good ones the first
  std::vector<Duration> predicted;  // by case, with this model fitted to the other groups
};

// Requires: a model; three groups.
ChosenForms choose_forms(const std::vector<FittedModel>& models,
                         const std::vector<Duration>& measured, const std::vector<int>& groups);

}  // namespace frazil
