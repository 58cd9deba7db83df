#pragma once
// Draws what an ablation found: for each arm its speed over `unfrozen`, and its accuracy less that
// of `unfrozen`. The page shows both pictures, and a picture file has them above each other.

#include <string>

#include "analysis/ablation/ablation.h"
#include "analysis/svg/interval_bars.h"

namespace frazil {

// Returns the charts: a bar for each arm that has run under a seed of `unfrozen`, with its 95 %
// interval. If some arm has several seeds, every seed is a dot; under one seed it would only mark
// the end of the bar.
IntervalChart chart_speeds(const Ablation& ablation);
IntervalChart chart_differences(const Ablation& ablation);

// Says in one sentence what bars, dots and diamonds of these charts are.
std::string tell_signs(const Ablation& ablation);

// Draws both charts as one picture that stands by itself: below the title how many seeds and test
// samples it rests on, at the end the signs and the notes of the ablation. Notes are wrapped; a
// title that is too long is cut. Equal ablations give equal bytes.
std::string draw_ablation(const Ablation& ablation, const std::string& title, int width = 960);

}  // namespace frazil
