#pragma once
// The part of a search for plans whose devices are steps ahead of each other
// (planner/plan/step_window.h), for models with several losses: in a distillation, where nothing
// but the teacher's outputs travels between stages, a device then never waits for a later one, and
// a step takes what its busiest device does (Pipe-BD's decoupled update). The search comes after
// all other plans. It gives steps ahead to each pipeline over several devices that is ranked, and
// to those of Pipe-BD's distribution (planner/search/rankings/hybrid_starts.h). From the fastest
// on, it then moves their cuts, up to three layers at a time, as long as the simulated time falls:
// for a step by itself another cut may be the best than for steps in a window, whose ramps overlap.
// Stages of several ranges of layers keep theirs.
//
// No bound over such plans is claimed. Of each one the busiest device's compute is a bound
// (planner/prediction/ranking.h).

#include "planner/bounds/search_options.h"
#include "planner/prediction/ranking.h"
#include "profiles/setting.h"

namespace frazil {

// A search ends once the windows that it simulated had about so many tasks.
inline constexpr std::int64_t kAheadEffort = 2'000'000;

// Tries such plans, of at most options.steps_ahead steps, and adds those that fit to the ranking,
// in order. Notes in the ranking what it came to; nothing where it may not look: with steps_ahead
// 0, a model of one loss, a barrier for clipping, or nothing ranked.
void add_windows(Setting setting, const SearchOptions& options, Ranking& ranking);

}  // namespace frazil
