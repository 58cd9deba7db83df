#pragma once
// Says in sentences what a reader of an ablation has to know beside its rows.

#include <string>
#include <vector>

#include "analysis/ablation/ablation.h"

namespace frazil {

// These words are said of an ablation whose control `shorter` is itself non-inferior to `unfrozen`.
inline constexpr const char* kBroughtNothing = "freezing brought nothing here";

std::vector<std::string> list_notes(const Ablation& ablation);

}  // namespace frazil
