#pragma once
// Compares what the plans and transitions of a run cost, as predicted, with hindsight: the cheapest
// way through the same masks at the same prices, for one who had known all masks beforehand. The
// provenance of a trace keeps both, as texts under keys that begin with "plans.".

#include <cstddef>
#include <optional>
#include <string>

#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

struct PlanRegret {
  Step from = 0;          // the step from which on steps and transitions count
  Duration predicted{0};  // what the run's cost
  Duration hindsight{0};
  Duration asking{0};  // what the run has waited for the planner, as measured
  int transitions = 0;
  // The guarantee of a run whose masks were not known: predicted <= factor x hindsight + additive.
  // None: they were known.
  struct Guarantee {
    std::size_t factor = 1;
    Duration additive{0};
    friend bool operator==(const Guarantee&, const Guarantee&) = default;
  };
  std::optional<Guarantee> guarantee = std::nullopt;

  double share() const;  // (predicted - hindsight) / hindsight
  friend bool operator==(const PlanRegret&, const PlanRegret&) = default;
};

// Adds the numbers to a provenance.
void note_regret(const PlanRegret& regret, Provenance& provenance);
// Returns what note_regret() has added; none if it is not there or cannot be read.
std::optional<PlanRegret> find_regret(const Provenance& provenance);

// Tells the numbers in a sentence, and as a JSON object.
std::string tell_regret(const PlanRegret& regret);
std::string regret_json(const PlanRegret& regret);

}  // namespace frazil
