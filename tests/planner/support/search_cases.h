#pragma once
// Draws small random questions for the plan search from a seed: models with skips, detached edges,
// frozen and tied layers; devices of one kind or two, on one host or two; memory from plenty to too
// little.

#include <cstdint>
#include <vector>

#include "planner/search/best_first.h"

namespace frazil {

struct SearchQuestion {
  ModelProfile profile;
  Cluster cluster;
  SearchOptions options;
};

SearchQuestion draw_search_question(std::uint64_t seed);
// Draws the same with some blocks frozen from the first on; plans may cache these.
SearchQuestion draw_cached_question(std::uint64_t seed);

// Draws the same with little memory and large messages, every second time with stages that share a
// device.
SearchQuestion draw_tight_question(std::uint64_t seed);

// Draws the same with the devices of every host in processes, most with links of classes; one
// question in four has devices of one kind, on one host.
SearchQuestion draw_question_over_processes(std::uint64_t seed);

// Lists every shape that a search may propose, without those that come to the same devices.
std::vector<Shape> list_shapes(Evaluator& evaluator);

}  // namespace frazil
