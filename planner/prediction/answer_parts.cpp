#include "planner/prediction/answer_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "planner/prediction/doubts.h"
#include "profiles/processes.h"
#include "profiles/quantity_text.h"

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
  bool parameters = false;
  for (const Doubt& doubt : profile.doubts) {
    if (doubt.kind != DoubtKind::kUnknown) continue;
    if (doubt.fact == DoubtedFact::kBoundaries) return "memory and messages";
    parameters = parameters || doubt.fact == DoubtedFact::kParameters;
  }
  if (parameters) return "memory and reductions";
  const auto rules = profile.provenance.find("rules");
  if (rules == profile.provenance.end()) return "";
  const auto notes = [&](std::string_view text) {
    return rules->second.find(text) != std::string::npos;
  };
  if (notes("boundary and stash bytes unknown")) return "memory and messages";
  return notes("parameter bytes unknown") ? "memory and reductions" : "";
}

std::string list_flags(const ModelProfile& profile, bool extrapolated) {
  std::string text;
  if (const std::string unknown = unknown_bytes(profile); !unknown.empty()) {
    text += fmt::format(
        "note: {} are not known: bytes in the profile are placeholders for what its trace does "
        "not tell\n",
        unknown);
  }
  if (extrapolated) text += "note: some costs are extrapolated beyond the measured sizes\n";
  if (profile.backward_was_split_by_rule) {
    text += "note: the profile's backward was split into I and W by rule, not measured\n";
  }
  return text + list_doubts(profile);
}

std::string list_free_links(const Cluster& cluster) {
  const auto devices = static_cast<std::int64_t>(cluster.devices.size());
  const std::int64_t all = devices * (devices - 1);
  const PairCounts pairs = count_pairs(cluster, all_devices(cluster));
  const auto is_free = [&](LinkClass link_class) {
    return cluster.usual_link(link_class).bandwidth.count == 0;
  };
  std::int64_t free = 0;
  for (const LinkClass each : kLinkClasses) {
    if (is_free(each)) free += pairs[static_cast<std::size_t>(each)];
  }
  for (const DirectedLink& link : cluster.links) {
    const bool was_free = is_free(cluster.class_of(link.from, link.to));
    free += int{link.link.bandwidth.count == 0} - int{was_free};
  }
  if (free == 0) return "";
  return fmt::format("note: bytes take no time over {} of {} links, which have no bandwidth\n",
                     free, all);
}

namespace {

// Returns what people call a kind of memory; files and JSON have memory_kind_name().
std::string_view word_for(MemoryKind kind) {
  return kind == MemoryKind::kStash ? "saved activations" : memory_kind_name(kind);
}

}  // namespace

std::string list_held(const MemoryPeak& peak) {
  std::string text;
  for (int k = 0; k < kMemoryKinds; ++k) {
    const Bytes held = peak.held[static_cast<std::size_t>(k)];
    if (held.count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word_for(static_cast<MemoryKind>(k)),
                        to_text(held));
  }
  return text.empty() ? "nothing" : text;
}

std::string count_of(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : noun.ends_with("h") ? "es" : "s");
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
