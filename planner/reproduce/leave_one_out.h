#pragma once
// Fitting a few constants so that no case has a say in its own prediction. Each constant is chosen
// from a short list of values; the fit takes the values with the smallest sum of |predicted /
// measured - 1| over the cases it may see. Leave-one-out refits all constants once per case,
// without that case (Stone 1974, JRSS B 36(2)).

#include <cstddef>
#include <functional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// A position in the list of each constant.
using Choice = std::vector<std::size_t>;

struct FittedModel {
  std::vector<std::size_t> list_sizes;  // of each constant, at least 1
  Choice start;                         // where every fit begins: the constants as measured
  // What the model says of every case. Asked once per choice.
  std::function<std::vector<Duration>(const Choice&)> predict;
};

struct CrossValidation {
  std::vector<Choice> choices;      // by case: fitted to all others
  std::vector<Duration> predicted;  // by case, at its choice
  Choice from_all;                  // fitted to all cases
  std::vector<Duration> in_sample;  // at that
  std::size_t evaluated = 0;        // choices that were predicted
};

// A search from `start`: in turn every value of each constant alone, then pairs of constants one or
// two places on, until nothing is better. The first of equals stays. Requires: one measured time
// above zero per case; at least two cases.
CrossValidation leave_one_out(const FittedModel& model, const std::vector<Duration>& measured);

}  // namespace frazil
