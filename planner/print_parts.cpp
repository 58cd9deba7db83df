#include "planner/print_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace frazil {

using Json = nlohmann::ordered_json;

double samples_per_second(const Plan& plan, Duration makespan) {
  if (makespan.count() == 0) return 0;
  return plan.batch_size * 1e9 / static_cast<double>(makespan.count());
}

double gap(Duration time, Duration bound) {
  if (bound.count() == 0) return 0;
  return static_cast<double>(time.count()) / static_cast<double>(bound.count()) - 1;
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string unknown_bytes(const ModelProfile& profile) {
  const auto rules = profile.provenance.find("rules");
  if (rules == profile.provenance.end()) return "";
  const auto notes = [&](std::string_view text) {
    return rules->second.find(text) != std::string::npos;
  };
  if (notes("boundary and stash bytes unknown")) return "memory and messages";
  return notes("parameter bytes unknown") ? "memory and reductions" : "";
}

std::string bounds_json(const PlanBounds& bounds) {
  const Json json = {{"lower_bound_makespan_ns", bounds.makespan.time.count()},
                     {"lower_bound_makespan_name", bounds.makespan.name},
                     {"lower_bound_span_ns", bounds.span.time.count()},
                     {"lower_bound_span_name", bounds.span.name}};
  return json.dump();
}

std::string memory_json(const MemoryPeak& peak, const Device& device) {
  Json held = Json::object();
  for (int k = 0; k < kMemoryKinds; ++k) {
    const std::string name(memory_kind_name(static_cast<MemoryKind>(k)));
    held[name + "_bytes"] = peak.held[static_cast<std::size_t>(k)].count;
  }
  const Json json = {{"memory_peak_bytes", peak.total.count},
                     {"memory_limit_bytes", device.memory_limit.count},
                     {"memory_peak_at_ns", peak.at.time_since_epoch().count()},
                     {"held", held}};
  return json.dump();
}

}  // namespace frazil
