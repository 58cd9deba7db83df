#pragma once
// Lays this project's own plans of PipeTransformer's training (He et al. 2021, Fig. 9: ViT-B/16 on
// ImageNet, alpha 1/3) beside PipeTransformer's plans and beside the best plan that never freezes,
// on the same devices. Loading, transitions and filling caches are charged to all. The same follows
// for hosts that have less room for features than the cache takes. What the published hosts had is
// not known (a published log of this training ends out of memory as it fills the cache), so their
// room is an assumption. Then come trainings whose models leave one device little room or none,
// where the elastic pipeline stands against the best of the fixed plans (fixed_space.h).

#include <optional>
#include <string>
#include <vector>

#include "planner/reproduce/own_plans/own_runs.h"

namespace frazil {

struct OwnRow {
  std::string name;
  std::string plans;
  Duration time{0};
  std::optional<TimeParts> parts = std::nullopt;  // none for PipeTransformer's planner
};

// The training on hosts with less room for features.
struct HostCase {
  OwnRow row;
  HostRoom room;
};

struct OwnComparison {
  std::string title;
  Bytes cache_of_host;  // the features that each host holds, under PipeTransformer too
  // GPipe, the best unfrozen plan, PipeTransformer, this project with PipeTransformer's rate of
  // caching, this project.
  std::vector<OwnRow> rows;
  std::vector<HostCase> hosts = {};  // PipeTransformer's comes first, then this project's

  const OwnRow& gpipe() const { return rows.front(); }
  const OwnRow& unfrozen() const { return rows[1]; }
  const OwnRow& own() const { return rows.back(); }
  // Returns the speed-up of own() over the best unfrozen plan if nothing but the forwards and
  // backwards of these two took time. Other plans may compute less.
  double compute_limit() const;
};

// A training under three kinds of plan.
struct OwnCase {
  std::string name;
  Bytes device_memory;
  std::vector<int> micro_batch_sizes;  // that the plans chose from
  int fitting_samples = 0;             // count_fitting_samples()
  Bytes cache_of_host;                 // as above
  OwnRuns runs;
};

OwnComparison compare_own_plans();
std::vector<OwnCase> plan_cases();

}  // namespace frazil
