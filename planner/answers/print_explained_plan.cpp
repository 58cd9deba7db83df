#include "planner/answers/print_explained_plan.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "planner/prediction/answer_parts.h"
#include "planner/prediction/plan_notation.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

struct Part {
  std::string_view name;
  std::string_view key;
  Duration StepShares::*time;
};

constexpr std::array kParts{
    Part{"compute", "compute_ns", &StepShares::compute},
    Part{"bubble", "bubble_ns", &StepShares::bubble},
    Part{"exposed communication", "exposed_communication_ns", &StepShares::exposed_communication},
    Part{"reduction and barrier", "reduction_ns", &StepShares::reduction}};

std::string signed_text(Duration difference) {
  const bool less = difference.count() < 0;
  return (less ? "-" : "+") + to_text(less ? -difference : difference);
}

std::string print_best(const std::vector<ExplainedCandidate>& best) {
  std::string text = fmt::format("best       {}: {}\n", best[0].summary, to_text(best[0].makespan));
  if (best.size() > 1) {
    text += fmt::format("runner-up  {}: {}, {} slower\n", best[1].summary,
                        to_text(best[1].makespan), to_text(best[1].makespan - best[0].makespan));
  }
  text += fmt::format("\n{:<24}{:>14}", "mean of a device", "best");
  if (best.size() > 1) text += fmt::format("{:>14}{:>14}", "runner-up", "it loses");
  text += "\n";
  for (const Part& part : kParts) {
    const Duration own = best[0].shares.*part.time;
    text += fmt::format("{:<24}{:>14}", part.name, to_text(own));
    if (best.size() > 1) {
      const Duration other = best[1].shares.*part.time;
      text += fmt::format("{:>14}{:>14}", to_text(other), signed_text(other - own));
    }
    text += "\n";
  }
  text += fmt::format("{:<24}{:>14}", "lower bound", to_text(best[0].bound.time));
  if (best.size() > 1) text += fmt::format("{:>14}", to_text(best[1].bound.time));
  text += fmt::format("  ({}", best[0].bound.name);
  if (best.size() > 1) text += fmt::format("; {}", best[1].bound.name);
  return text + ")\n";
}

std::string print_families(const PlanExplanation& explanation) {
  std::string text = fmt::format(
      "\n{}, {} of devices simulated\n{:<18}{:>12}{:>12}{:>12}{:>12}  {}\n",
      count_of(explanation.candidates, "candidate"), count_of(explanation.simulated, "group"),
      "rejected", "by bound", "slower", "too large", "refused", "nearest bound, or why");
  for (const FamilyCount& family : explanation.families) {
    std::string why;
    if (family.bounded > 0) {
      why = fmt::format("{} ({})", to_text(family.nearest_bound), family.nearest_bound_name);
    }
    if (!family.refusals.empty()) {
      why += (why.empty() ? "" : "; ") + family.refusals.front().sentence;
    }
    text +=
        fmt::format("{:<18}{:>12}{:>12}{:>12}{:>12}{}{}\n", family.schedule, family.bounded,
                    family.slower, family.too_large, family.refused, why.empty() ? "" : "  ", why);
  }
  return text;
}

// Names the device that lacks memory. If every schedule is rejected, that is the device with the
// most memory; if the devices of a pipeline are too small together, the mean of them, which need
// not be any device.
std::string name_device(const RejectedShapes& shapes, const Cluster& cluster) {
  if (!shapes.schedule) return "the largest device";
  const std::optional<DeviceId>& device = shapes.rejection.device;
  return device ? cluster.devices.at(device->index()).name : "the mean device";
}

std::string print_nearest(const PlanExplanation& explanation, const Cluster& cluster) {
  if (explanation.nearest.empty()) return "";
  std::string text =
      fmt::format("\n{:<14}  {:<16}  {:>10}  {:>5}  {:<18}  {:>14}  {:>12}  {}\n", "nearest",
                  "schedule", "candidates", "size", "device", "needs at least", "has", "misses");
  for (const RejectedShapes& shapes : explanation.nearest) {
    const Rejection& rejection = shapes.rejection;
    const Bytes missing = rejection.needed - rejection.available;
    text += fmt::format(
        "{:<14}  {:<16}  {:>10}  {:>5}  {:<18}  {:>14}  {:>12}  {} ({} bytes)\n",
        shape_notation(shapes),
        shapes.schedule ? variant_notation(*shapes.schedule, shapes.recompute) : "any",
        shapes.candidates, shapes.micro_batch_size, name_device(shapes, cluster),
        to_text(rejection.needed), to_text(rejection.available), to_text(missing), missing.count);
  }
  if (!explanation.names_nearest || explanation.nearest.size() == 1) return text;
  return text +
         "the first was simulated; of the others bounds say that they miss so much or more\n";
}

Suffixes suffixes_of(const PlanExplanation& explanation) {
  Suffixes suffixes;
  const auto add = [&](const RejectedShapes& shapes) {
    if (shapes.schedule) suffixes.add(suffixes_of(*shapes.schedule, shapes.recompute));
  };
  for (const RejectedShapes& shapes : explanation.nearest) add(shapes);
  for (const FamilyCount& family : explanation.families) {
    if (family.nearest_fit) add(*family.nearest_fit);
  }
  return suffixes;
}

// Returns one line for each family with shapes that are too large: the shape that misses least.
std::string print_misses(const PlanExplanation& explanation, const Cluster& cluster) {
  std::string text;
  for (const FamilyCount& family : explanation.families) {
    if (!family.nearest_fit) continue;
    const Rejection& rejection = family.nearest_fit->rejection;
    const Bytes missing = rejection.needed - rejection.available;
    text += fmt::format(
        "{}: {} needs at least {} ({} bytes) on {}, which has {}: {} ({} bytes) more\n",
        family.schedule, describe_shapes(*family.nearest_fit), to_text(rejection.needed),
        rejection.needed.count, name_device(*family.nearest_fit, cluster),
        to_text(rejection.available), to_text(missing), missing.count);
  }
  return text.empty() ? "" : "\ntoo large, with the least that a bound says is missing:\n" + text;
}

std::string print_refusals(const PlanExplanation& explanation) {
  std::string text;
  for (const FamilyCount& family : explanation.families) {
    for (const Refusals& refusals : family.refusals) {
      text += fmt::format("{}: {} refused: {}\n", family.schedule, refusals.candidates,
                          refusals.sentence);
    }
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string print_plan_explanation(const PlanExplanation& explanation, const Cluster& cluster) {
  constexpr std::size_t kMostNamed = 8;
  std::string text = explanation.best.empty() ? "" : "\n" + print_best(explanation.best);
  text += print_nearest(explanation, cluster) + print_families(explanation) +
          print_misses(explanation, cluster) + explain_suffixes(suffixes_of(explanation)) +
          print_refusals(explanation);
  const std::vector<DeviceId>& idle = explanation.idle.devices;
  if (idle.empty()) return text;
  text += "\nidle: ";
  for (std::size_t d = 0; d < std::min(idle.size(), kMostNamed); ++d) {
    text += (d == 0 ? "" : ", ") + cluster.devices[idle[d].index()].name;
  }
  if (idle.size() > kMostNamed) text += fmt::format(" and {} more", idle.size() - kMostNamed);
  return text + "; " + explanation.idle.reason + "\n";
}

std::string plan_explanation_json(const PlanExplanation& explanation, const Cluster& cluster) {
  Json best = Json::array();
  for (const ExplainedCandidate& candidate : explanation.best) {
    Json json = {{"summary", candidate.summary},
                 {"makespan_ns", candidate.makespan.count()},
                 {"devices", candidate.devices},
                 {"lower_bound_ns", candidate.bound.time.count()},
                 {"lower_bound_name", candidate.bound.name}};
    for (const Part& part : kParts) {
      json[std::string(part.key)] = (candidate.shares.*part.time).count();
    }
    best.push_back(json);
  }
  Json families = Json::array();
  for (const FamilyCount& family : explanation.families) {
    Json json = {{"schedule", family.schedule},
                 {"by_bound", family.bounded},
                 {"slower", family.slower},
                 {"too_large", family.too_large},
                 {"refused", family.refused}};
    if (family.bounded > 0) {
      json["nearest_bound_ns"] = family.nearest_bound.count();
      json["nearest_bound_name"] = family.nearest_bound_name;
    }
    for (const Refusals& refusals : family.refusals) {
      json["refusals"].push_back(
          {{"sentence", refusals.sentence}, {"candidates", refusals.candidates}});
    }
    if (family.nearest_fit) {
      const Rejection& rejection = family.nearest_fit->rejection;
      json["nearest_fit"] = {{"shape", describe_shapes(*family.nearest_fit)},
                             {"device", name_device(*family.nearest_fit, cluster)},
                             {"needed_bytes", rejection.needed.count},
                             {"available_bytes", rejection.available.count}};
    }
    families.push_back(json);
  }
  Json nearest = Json::array();
  for (const RejectedShapes& shapes : explanation.nearest) {
    nearest.push_back({{"shape", describe_shapes(shapes)},
                       {"candidates", shapes.candidates},
                       {"device", name_device(shapes, cluster)},
                       {"needed_bytes", shapes.rejection.needed.count},
                       {"available_bytes", shapes.rejection.available.count}});
  }
  Json idle = Json::array();
  for (const DeviceId device : explanation.idle.devices) {
    idle.push_back(cluster.devices[device.index()].name);
  }
  const Json json = {{"best", best},
                     {"nearest", nearest},
                     {"candidates", explanation.candidates},
                     {"simulated", explanation.simulated},
                     {"rejected", families},
                     {"idle_devices", idle},
                     {"idle_reason", explanation.idle.reason}};
  return Json{{"explanation", json}}.dump();
}

}  // namespace frazil
