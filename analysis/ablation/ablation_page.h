#pragma once
// Makes the page of an ablation: speeds and differences as bars with a dot for every seed, accuracy
// over time and over device seconds, what froze when under which plans, and every run.

#include <string>

#include "analysis/ablation/ablation.h"

namespace frazil {

// Returns the page, one file that loads nothing. Equal ablations give equal bytes.
std::string to_html(const Ablation& ablation, const std::string& title);

}  // namespace frazil
