#include "planner/what_if/what_if_memory.h"

#include <algorithm>

#include "planner/plan/schedule_facts.h"

namespace frazil {
namespace {

// Bytes measured with g++ 12 and rounded up.
constexpr double kProgram = 8 << 20;
constexpr double kOfStage = 2500;
// F and B of a micro-batch on a stage, with their tasks and messages.
constexpr double kForwardAndBackward = 780;
constexpr double kMoreAction = 280;  // W beside I, a forward again, an update
constexpr double kSearchedOrder = 560;
constexpr double kTimelineOfAction = 170;
constexpr double kChromeOfAction = 350;
constexpr double kMessages = 900;  // of a micro-batch and stage
constexpr double kLargest = 9e18;

// Returns the actions of a micro-batch on a stage.
double count_actions(const ScheduleFacts& facts, int stages) {
  double actions = 2;
  if (facts.splits_backward) ++actions;
  if (facts.recomputes_itself) ++actions;
  if (facts.versions == WeightVersions::kStash) ++actions;  // an update after every backward
  if (facts.versions == WeightVersions::kTwoBuffered) actions += 1.0 / std::max(stages, 1);
  return actions;
}

Bytes round_up(double bytes) { return Bytes{static_cast<std::int64_t>(std::min(bytes, kLargest))}; }

}  // namespace

Bytes estimate_memory(const WhatIf& what_if, const WhatIfOutputs& outputs) {
  const ScheduleFacts& facts = facts_of(what_if.schedule);
  const double stages = static_cast<double>(what_if.stages) * what_if.chunks.value_or(facts.chunks);
  const double actions = count_actions(facts, what_if.stages);
  double each = kForwardAndBackward + (actions - 2) * kMoreAction;
  if (what_if.search) each += kSearchedOrder;
  if (outputs.timeline) each += kTimelineOfAction * actions;
  if (outputs.chrome) each += kChromeOfAction * actions;
  if (outputs.messages) each += kMessages;
  return round_up(kProgram + kOfStage * stages + each * stages * what_if.micro_batches);
}

Bytes estimate_comparison(const WhatIf& question, int chunks) {
  Bytes most;
  for (const ScheduleKind kind : synchronous_schedules()) {
    WhatIf what_if = question;
    what_if.schedule = kind;
    const ScheduleFacts& facts = facts_of(kind);
    what_if.chunks = facts.legal == ScheduleFacts::Chunks::kFixed ? facts.chunks : chunks;
    what_if.search.reset();
    most = std::max(most, estimate_memory(what_if));
  }
  return most;
}

}  // namespace frazil
