#include "planner/drift/drift_decision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "planner/drift/rebalance.h"
#include "planner/plan/activity.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/ranking.h"
#include "planner/prediction/simplicity.h"

namespace frazil {
namespace {

// Adds a proposal unless it is the held plan or one that is there already.
void add_proposal(DriftProposer by, Plan plan, const DriftQuestion& question,
                  std::vector<DriftProposal>& proposals) {
  const auto is_like = [&plan](const Plan& other) {
    Plan compared = plan;
    compared.provenance = other.provenance;
    compared.model_hash = other.model_hash;
    return compared == other;
  };
  const bool is_known =
      std::any_of(proposals.begin(), proposals.end(),
                  [&](const DriftProposal& proposal) { return is_like(proposal.plan); });
  if (is_known || is_like(question.held)) return;
  proposals.push_back({.by = by, .plan = std::move(plan)});
}

void judge(DriftProposal& proposal, const DriftQuestion& question, Setting setting) {
  const Candidate candidate = judge_plan(proposal.plan, setting, question.step);
  proposal.step = candidate.makespan;
  if (candidate.infeasible) {
    proposal.refused = candidate.infeasible->reason;
    return;
  }
  proposal.transition =
      price_transition(question.held, proposal.plan, setting,
                       find_activity(setting.profile(), question.held.mask), question.overhead)
          .total;
}

// Returns ", and device 2 is released"; empty: the plan uses all of them.
std::string list_released(const std::vector<DeviceId>& held, const Plan& plan) {
  const std::vector<DeviceId> used = list_used_devices(plan);
  std::vector<int> released;
  for (const DeviceId device : held) {
    if (!std::binary_search(used.begin(), used.end(), device)) released.push_back(device.value);
  }
  if (released.empty()) return "";
  return fmt::format(", and {} {} {} released", released.size() == 1 ? "device" : "devices",
                     fmt::join(released, ", "), released.size() == 1 ? "is" : "are");
}

std::string ms_text(Duration time) { return fmt::format("{:.3f} ms", to_ms(time)); }

}  // namespace

std::string_view name_of(DriftProposer proposer) {
  switch (proposer) {
    case DriftProposer::kSearch:
      return "search";
    case DriftProposer::kPartition:
      return "partition";
    case DriftProposer::kDiffusion:
      return "diffusion";
    case DriftProposer::kPacking:
      return "packing";
  }
  return "";
}

DriftDecision decide_on_drift(const DriftQuestion& question, Setting measured, Setting least) {
  DriftDecision decision;
  decision.held_devices = list_used_devices(question.held);
  decision.held_step = simulate_plan(question.held, measured, question.step).step_time;
  if (question.searched) {
    add_proposal(DriftProposer::kSearch, *question.searched, question, decision.proposals);
  }
  if (can_rebalance(question.held)) {
    add_proposal(DriftProposer::kPartition, rebalance_by_partition(question.held, measured),
                 question, decision.proposals);
    add_proposal(DriftProposer::kDiffusion, rebalance_by_diffusion(question.held, measured),
                 question, decision.proposals);
    add_proposal(DriftProposer::kPacking, rebalance_by_packing(question.held, measured), question,
                 decision.proposals);
  }
  const auto total = [&](const DriftProposal& proposal) {
    return std::pair(proposal.step * question.steps + proposal.transition,
                     count_used_devices(proposal.plan));
  };
  for (std::size_t i = 0; i < decision.proposals.size(); ++i) {
    DriftProposal& proposal = decision.proposals[i];
    judge(proposal, question, measured);
    if (!proposal.refused.empty()) continue;
    if (!decision.best || total(proposal) < total(decision.proposals[*decision.best])) {
      decision.best = i;
    }
  }
  if (const DriftProposal* const best = decision.chosen()) {
    decision.gain = (decision.held_step - best->step) * question.steps;
    const auto least_step = [&](const Plan& plan) {
      return simulate_plan(plan, least, question.step).step_time;
    };
    decision.least_gain = (least_step(question.held) - least_step(best->plan)) * question.steps;
    const Duration gain = std::min(decision.gain, decision.least_gain);
    const bool needs_fewer = count_used_devices(best->plan) < count_used_devices(question.held);
    decision.replans = gain > best->transition || (needs_fewer && gain == best->transition);
  }
  return decision;
}

std::string explain(const DriftDecision& decision, Step steps) {
  const DriftProposal* const best = decision.chosen();
  if (best == nullptr) {
    return fmt::format("no other plan was found for the {} steps to come", steps);
  }
  std::string others;
  for (const DriftProposal& proposal : decision.proposals) {
    if (&proposal == best) continue;
    others += fmt::format("{} {}", others.empty() ? "; beside it" : ",",
                          proposal.refused.empty()
                              ? fmt::format("{} {}", name_of(proposal.by),
                                            ms_text(decision.held_step - proposal.step))
                              : fmt::format("{} cannot run", name_of(proposal.by)));
  }
  const std::string released = list_released(decision.held_devices, best->plan);
  return fmt::format(
      "{} saves {} in each of {} steps, {} at the least drift, the transition takes {}{}{}",
      name_of(best->by), ms_text(decision.held_step - best->step), steps,
      ms_text(decision.least_gain / std::max<Step>(1, steps)), ms_text(best->transition), released,
      others);
}

}  // namespace frazil
