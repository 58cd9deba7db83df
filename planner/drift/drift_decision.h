#pragma once
// Decides whether a run whose costs have drifted goes on under another plan. For the setting with
// the measured costs it simulates the held plan and all proposals: the best plan of the planner's
// search, and DynMo's three (rebalance.h). With n steps to come the best proposal is the one with
// the least
//   n x step + transition
// and of equal ones the one that uses the fewest devices. The run re-plans if that plan gains more
// than the transition to it takes, or as much where it needs fewer devices than the held plan,
// which are then released:
//   n x (held step - step) > transition
// not only at the measured costs, but also at the ends of their intervals that are nearest to no
// drift: what is just above the noise has a size that is mostly noise.
// DynMo (Wahib, Soyturk, Unat, arXiv 2505.14864) balances at fixed intervals whatever that brings;
// the comparison is the amortisation that a freeze policy's gate asks for as well
// (planner/transitions/predict_transition.h).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/setting.h"

namespace frazil {

// In the order in which they propose.
enum class DriftProposer { kSearch, kPartition, kDiffusion, kPacking };
std::string_view name_of(DriftProposer proposer);  // "search", "partition", ..

struct DriftQuestion {
  Plan held;
  Step steps = 0;  // to come under this mask, as far as is known
  std::optional<Plan> searched =
      std::nullopt;  // the planner's best plan for the setting; none: none fits
  StepOptions step = {};
  TransitionOverhead overhead = {};
};

struct DriftProposal {
  DriftProposer by = DriftProposer::kSearch;
  Plan plan;
  Duration step{0};
  Duration transition{0};
  std::string refused = {};  // why the plan cannot run; empty: it can
};

struct DriftDecision {
  Duration held_step{0};                           // of the held plan, at the measured costs
  std::vector<DeviceId> held_devices = {};         // that the held plan uses, ascending
  std::vector<DriftProposal> proposals = {};       // that are other plans than the held one
  std::optional<std::size_t> best = std::nullopt;  // none: nothing else can run
  bool replans = false;                            // goes on under the best
  Duration gain{0};        // of the best over the steps to come; below 0: it loses
  Duration least_gain{0};  // the same at the least drift

  const DriftProposal* chosen() const { return best ? &proposals[*best] : nullptr; }
};

// Decides for the setting with the measured costs and that with the least drift. Plans that the
// simulator refuses or that lack memory stay among the proposals with their reason.
DriftDecision decide_on_drift(const DriftQuestion& question, Setting measured, Setting least);

// Says by which figures, in one clause: "diffusion saves 1.203 ms in each of 200 steps, 0.700 ms at
// the least drift, the transition takes 2.100 ms, and device 2 is released; beside it partition
// 0.801 ms".
std::string explain(const DriftDecision& decision, Step steps);

}  // namespace frazil
