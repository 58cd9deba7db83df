#pragma once
// A shape: a candidate of the search before its cuts are known. It is numbers alone, cheap to list,
// count and put in order. Groups of devices each hold the model and share the batch. A group has
// one pipeline, or two over the same devices if the schedule runs both ways.

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/bounds/search_options.h"
#include "planner/plan/plan.h"

namespace frazil {

struct ShapeCell {
  int devices = 1;   // of a group
  int replicas = 1;  // groups
  int longer = 0;    // the first so many groups have one device more; < replicas
  int micro_batch_size = 1;

  int used() const { return devices * replicas + longer; }
  friend auto operator<=>(const ShapeCell&, const ShapeCell&) = default;
};

struct ShapeVariant {
  int arrangement = 0;  // of the devices, planner/bounds/device_groups.h
  ScheduleKind schedule = ScheduleKind::kGpipe;
  int chunks = 1;
  std::optional<int> in_flight = std::nullopt;  // none: the schedule's own
  bool recompute = false;
  bool cached = false;  // the frozen prefix

  NamedSchedule named() const { return {schedule, in_flight, chunks}; }
  friend auto operator<=>(const ShapeVariant&, const ShapeVariant&) = default;
};

// The part of a variant that the bounds of planner/bounds/work_bound.h depend on.
struct VariantClass {
  bool one_stage_per_device = true;
  bool one_way = true;
  bool splits = false;
  bool recompute = false;
  bool cached = false;
  friend auto operator<=>(const VariantClass&, const VariantClass&) = default;
};
VariantClass class_of(const ShapeVariant& variant);

struct Shape {
  ShapeCell cell;
  ShapeVariant variant;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

// Everything a search chooses from.
struct SearchSpace {
  int layers = 1;
  int devices = 1;
  int arrangements = 1;
  const SearchOptions& options;
  int cached = 0;  // layers of the frozen prefix, where plans may cache it

  int micro_batches(int size) const { return divide_up(options.batch_size, size); }
  int most_group_devices() const;
  int most_replicas(int size) const;
};

// Returns every cell whose groups are equally long, by (devices, size, replicas).
std::vector<ShapeCell> list_cells(const SearchSpace& space);
// Returns the cells between this one and the one whose groups all have a device more; none if the
// search keeps groups equally long.
std::vector<ShapeCell> list_longer(const ShapeCell& cell, const SearchSpace& space);

// Returns every variant of a cell whose pipelines have no more stages than the search allows. A
// joint search takes chunks 2, 3, 4, 6, 8 where the schedule takes any number (the even ones of
// these where it takes only even numbers), and, where the schedule takes any K, other depths beside
// the schedule's own, but none under which the list has another schedule: every depth that gives
// other orders if these are at most 24, else at most sixteen from 1 to 2p. Other searches take the
// schedule's own chunks and depth.
//
// Arrangements are those of the space; recomputing, of all stages, is as the options say. A prefix
// is cached by the first stage alone; so a pipeline has no variant with a cache if it has more
// stages than one plus the layers left. Of two pipelines that run both ways each has a first stage.
std::vector<ShapeVariant> list_variants(const ShapeCell& cell, const SearchSpace& space);

// Returns a number that decides, beside the devices of a group, which depths its variants have:
// larger shares of micro-batches make no difference from some share on.
std::int64_t reach_of_depths(int devices, int share);

// Returns the shape of a plan whose pipelines are groups of one length or two, the longer ones
// first; its arrangement is not known and is 0. None if the plan surely is no shape's.
std::optional<Shape> find_shape(const Plan& plan);

}  // namespace frazil
