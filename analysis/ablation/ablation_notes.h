#pragma once
// Says in sentences what a reader of an ablation has to know beside its rows.

#include <string>
#include <string_view>
#include <vector>

#include "analysis/ablation/ablation.h"

namespace frazil {

// Returns what is said of a gain in a few words, as "freezing brought nothing here".
std::string_view tell_gain(FreezingGain gain);

// The first note is that of the gain, if there is one.
std::vector<std::string> list_notes(const Ablation& ablation);

}  // namespace frazil
