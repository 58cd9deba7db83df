#pragma once
// What a variant of a shape says of memory before there is a plan: where its stages lie, and how
// many micro-batches each holds at once.

#include <optional>

#include "planner/bounds/shape.h"
#include "planner/plan/placement.h"

namespace frazil {

Placement placement_of(const ShapeVariant& variant);

// The first schedule of the menu with this placement.
ScheduleKind example_of(Placement placement);

// Of both directions.
int stages_per_device(const ShapeVariant& variant);

bool recomputes(const ShapeVariant& variant, int stage, int stages);

// Whatever the order of its backwards, a stage holds so many when its first one begins; none: of a
// schedule outside the linear families.
std::optional<int> known_in_flight(const ShapeVariant& variant, int share, int stages, int stage);

// Micro-batches that a stage holds at once: for the linear families what their lists say, for the
// others all of the share.
int most_in_flight(const ShapeVariant& variant, int share, int stages, int stage);

}  // namespace frazil
