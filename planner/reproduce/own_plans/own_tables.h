#pragma once
// Lays this project's own plans of PipeTransformer's training (He et al. 2021, Fig. 9: ViT-B/16 on
// ImageNet, alpha 1/3) beside PipeTransformer's plans and beside the best plan that never freezes,
// on the same devices. Loading, transitions and filling caches are charged to all. Then come
// trainings whose models leave one device little room or none, where the elastic pipeline stands
// against the fixed plans of the search.

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

struct OwnComparison {
  std::string title;
  Bytes cache_of_host;  // the features that each host holds, under PipeTransformer too
  // GPipe, the best unfrozen plan, PipeTransformer, this project with PipeTransformer's rate of
  // caching, this project.
  std::vector<OwnRow> rows;

  const OwnRow& gpipe() const { return rows.front(); }
  const OwnRow& unfrozen() const { return rows[1]; }
  const OwnRow& own() const { return rows.back(); }
  // Returns the speed-up over the best unfrozen plan if nothing but forwards and backwards took
  // time.
  double compute_limit() const;
};

// A training under three kinds of plan.
struct OwnCase {
  std::string name;
  Bytes device_memory;
  std::vector<int> micro_batch_sizes;  // that the plans chose from
  int fitting_samples = 0;             // count_fitting_samples()
  OwnRuns runs;
};

OwnComparison compare_own_plans();
std::vector<OwnCase> plan_cases();

std::string print_own(const OwnComparison& comparison, const std::vector<OwnCase>& cases);
// Returns {"title", "compute_limit", "rows": [{"name", "plans", "time_ns", "over_gpipe",
// "over_unfrozen", "parts"}], "cases": [{"name", "device_memory_bytes",
// "micro_batch_sizes", "fitting_samples", "unfrozen", "fixed" and "elastic": {"plans", "time_ns",
// "parts"}}]}; "parts" are in ns, and stand where they are known.
std::string own_json(const OwnComparison& comparison, const std::vector<OwnCase>& cases);

}  // namespace frazil
