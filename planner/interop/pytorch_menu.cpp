#include "planner/interop/pytorch_menu.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <variant>

#include "profiles/error.h"

namespace frazil {
namespace {

// Returns why PyTorch's runtime has no such schedule; "" if it has.
std::string_view why_not(const ScheduleFacts& facts) {
  if (directions(facts.placement) > 1) {
    return "its pipelines run both ways through the same devices, and a rank of PyTorch's has "
           "stages of one pipeline";
  }
  if (facts.versions != WeightVersions::kSync) return "it updates inside a step";
  if (facts.recomputes_itself) return "it recomputes by schedule";
  return "";
}

std::string list_runnable() {
  std::string names;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (!runs_in_pytorch(facts)) continue;
    names += names.empty() ? "" : ", ";
    names += facts.name;
  }
  return names;
}

}  // namespace

bool runs_in_pytorch(const ScheduleFacts& facts) { return why_not(facts).empty(); }

void refuse_foreign_schedule(const Plan& plan) {
  const auto* const named = std::get_if<NamedSchedule>(&plan.schedule);
  if (named == nullptr) return;
  const ScheduleFacts& facts = facts_of(named->kind);
  if (runs_in_pytorch(facts)) return;
  throw InfeasibleError(
      fmt::format("PyTorch's pipelining has no schedule like {}, for {}; it has {}", facts.name,
                  why_not(facts), list_runnable()));
}

}  // namespace frazil
