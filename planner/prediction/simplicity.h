#pragma once
// Which of two plans is simpler, and a ranking for people: plans that are as fast as the fastest
// within the noise of the times behind them are told apart by how simple they are, not by a
// difference that no run would show.

#include <tuple>

#include "planner/prediction/ranking.h"

namespace frazil {

// Counts what a reader of a plan has to know beside its cuts, one for each of: pipelines of more
// than one device, several stages on a device, a stage on several devices, pipelines both ways
// through the devices, a backward in two parts, an order of work that depends on measured times or
// is listed action by action, a chosen number of micro-batches in flight, activation checkpointing,
// pipelines of unequal length.
int count_complications(const Plan& plan);

// Counts the devices that have a stage, each once, however many of the plan's stages lie on it.
int count_used_devices(const Plan& plan);

// The order of plans that are equally fast: complications, devices used, stages of a pipeline.
using Simplicity = std::tuple<int, int, std::size_t>;
Simplicity simplicity_of(const Plan& plan);

// Returns the longest makespan that is as fast as `fastest` within the noise.
Duration within_noise(Duration fastest, std::int64_t noise_ppm);

// Reorders the feasible candidates: those within the noise of the fastest come first, the simplest
// before all and the faster of two equally simple ones; the others follow in their order. With a
// noise of 0 nothing moves. Requires: the candidates are in the order of rank().
void prefer_simplest(Ranking& ranking, std::int64_t noise_ppm);

}  // namespace frazil
