#pragma once
// What controls of an ablation are made from. `shorter` gets its length from what `unfrozen` and
// `all` took under the same seed; `from-top` and `random-masks` get their masks from those of
// `all`. A control whose origin has been run again is not the control of what stands there now.

#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/pair_result.h"

namespace frazil {

// Returns the result of a pair; nullptr if it is not among these.
const PairResult* find_result(const std::vector<PairResult>& results, const ArmSeed& pair);

// Returns a hash of what the control of this pair is made from; empty for an arm that is made from
// no other. None if some of that is not among the results.
std::optional<std::string> find_origin(const ArmSeed& pair, const std::vector<PairResult>& results);

// Leaves out the controls that are made from others than these results, or from results that are
// not there. Returns their number.
std::size_t drop_orphans(std::vector<PairResult>& results);

}  // namespace frazil
