#pragma once
// A proposal: a shape whose micro-batches are dealt and whose cuts are known, and the plan that it
// makes. Groups that are alike are a class: they have the same share and the same cuts.

#include <cstdint>
#include <vector>

#include "planner/bounds/device_groups.h"
#include "planner/bounds/shape.h"
#include "planner/plan/plan.h"

namespace frazil {

// Groups of one device-group class with equal shares. If `has_short`, the last micro-batch of the
// share is the short one.
struct GroupClass {
  int device_class = 0;
  int groups = 0;
  int share = 0;
  bool has_short = false;
  int gradient_sets = 1;  // as held by the group that holds most
  std::vector<LayerId> cuts;
};

struct Proposal {
  int most_nodes = 1;               // of the gradient tree that one direction of a group ships
  std::vector<int> shares;          // by group
  std::vector<int> class_of;        // by group
  std::vector<GroupClass> classes;  // in the order of their first groups
};

// The owners that reduce a layer's gradients: so many devices, of which one ships that many nodes
// of the gradient tree or more.
struct Owners {
  int devices = 1;
  int nodes = 1;
};

// Returns the micro-batches of a group, `share` from `first` on, by direction; two directions get a
// half each, the second one the odd micro-batch.
std::vector<MicroBatches> split_share(int first, int share, int directions);
// Returns the F, I and W of one group in a step, a fused backward counted as one.
std::int64_t count_actions(const Shape& shape, const GroupClass& group);
Owners owners_of(const Shape& shape, const Proposal& proposal);

// Makes the plan of a proposal; only its model's hash is left empty.
Plan make_plan(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups,
               const SearchOptions& options, int layers);
// Makes the plan of one group alone: its devices and its micro-batches are numbered from 0.
Plan make_group_plan(const Shape& shape, const GroupClass& group, const Cluster& group_cluster,
                     const SearchOptions& options, int layers);

}  // namespace frazil
