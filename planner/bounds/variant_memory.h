#pragma once
// What a variant of a shape tells about memory before there is a plan: where its stages lie, and
// how many micro-batches each stage holds at once.

#include <optional>

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

// Returns how many micro-batches a stage holds when its first backward begins, whatever the order
// of its backwards. Known for the linear classes kTwoPhases, kFalling and kLevel
// (planner/plan/schedule_facts.h) alone; else none.
std::optional<int> known_in_flight(const ShapeVariant& variant, int share, int stages, int stage);

// Returns the most micro-batches that a stage holds at once: known_in_flight() where it is known,
// else all of the share.
int most_in_flight(const ShapeVariant& variant, int share, int stages, int stage);

}  // namespace frazil
