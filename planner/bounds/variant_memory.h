#pragma once
// What a variant of a shape tells about memory before there is a plan: where its stages lie, and
// how many micro-batches each stage holds at once.

#include <optional>

#include "planner/bounds/chain_sums.h"
#include "planner/bounds/shape.h"
#include "planner/plan/placement.h"

namespace frazil {

Placement placement_of(const ShapeVariant& variant);

// Returns the first schedule of the menu with this placement.
ScheduleKind example_of(Placement placement);

// Returns the number of stages on a device, both directions together.
int stages_per_device(const ShapeVariant& variant);

// True if this stage recomputes (activation checkpointing), by the variant or by its schedule.
bool recomputes(const ShapeVariant& variant, int stage, int stages);

// The micro-batches whose stash a stage holds, at one moment. Where backwards split, a layer
// without a W (it has no parameters, or is frozen) frees its stash with I, so that fewer of its
// stashes are held than of a layer with a W.
struct InFlight {
  int until_weight = 0;  // of layers with a W, from F to W, or to B
  int until_input = 0;   // of layers without one, from F to I, or to B
  friend bool operator==(const InFlight&, const InFlight&) = default;
};

// Returns what these micro-batches hold of a span that keeps its stash.
Bytes stash_in_flight(const ChainSums& sums, LayerSpan span, const InFlight& in_flight);

// Returns what a stage holds in flight at its fullest moment, whatever the times of its work. Known
// for the linear classes kTwoPhases, kFalling and kLevel (planner/plan/schedule_facts.h) alone;
// else none. `share` counts whole micro-batches; one more that is short does not lessen the answer.
std::optional<InFlight> known_in_flight(const ShapeVariant& variant, int share, int stages,
                                        int stage);

// Returns the most that a stage holds in flight at once: known_in_flight() where it is known, else
// all of the share.
InFlight most_in_flight(const ShapeVariant& variant, int share, int stages, int stage);

}  // namespace frazil
