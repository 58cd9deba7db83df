#include "planner/answers/print_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/bounds/device_groups.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/answer_parts.h"
#include "profiles/processes.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

// Returns the bound, if the ranking has one.
const SearchedCuts* proof_of(const Ranking& ranking) {
  return ranking.best() != nullptr && ranking.cuts ? &*ranking.cuts : nullptr;
}

std::string list_schedules(const SearchOptions& options) {
  if (options.schedules == synchronous_schedules()) return "all synchronous schedules";
  std::string names;
  for (const ScheduleKind kind : options.schedules) {
    names += (names.empty() ? "" : ", ") + std::string(schedule_name(kind));
  }
  return names;
}

std::string list_sizes(const std::vector<int>& sizes) {
  std::string text;
  for (const int size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

std::string describe_chunks_and_depths(const SearchOptions& options) {
  if (!options.joint) return "with their own numbers of chunks and of micro-batches in flight";
  const auto some = [&](auto condition) {
    return std::any_of(options.schedules.begin(), options.schedules.end(),
                       [&](ScheduleKind kind) { return condition(facts_of(kind)); });
  };
  std::string text;
  if (some([](const ScheduleFacts& facts) {
        return facts.legal != ScheduleFacts::Chunks::kFixed;
      })) {
    text += " on several devices in 2, 3, 4, 6 or 8 chunks as far as they take these,";
  }
  if (some([](const ScheduleFacts& facts) {
        return facts.takes_in_flight && has_linear_bounds(facts);
      })) {
    text +=
        " with their own micro-batches in flight and, on p > 1 devices, any other number that "
        "changes their order where these are at most 24, else up to 16 numbers up to 2p,";
  }
  return text.empty() ? "" : text.substr(1, text.size() - 2);
}

std::string describe_devices(const SearchOptions& options, const Cluster& cluster) {
  if (!options.joint) return "devices as the cluster lists them";
  const DeviceGroupClasses classes(cluster, options.joint);
  const std::string by_host =
      std::string("host by host") +
      (count_processes(cluster) > 1 ? " and process by process, the largest process first" : "");
  if (classes.kinds() == 1 && classes.links_are_alike()) return "devices " + by_host;
  const std::string dealt = ", dealt one group or one stage of all groups after the other";
  if (classes.kinds() == 1) return "devices " + by_host + dealt;
  return "devices of one kind together and " + by_host + ", the kinds " +
         std::string(classes.kinds() <= 3 ? "in every order" : "fastest first or slowest first") +
         dealt + ", the slowest idle";
}

// Returns what a search may choose from, in the order of the table's columns.
std::string describe_space(const SearchOptions& options, Setting setting) {
  const auto layers = static_cast<int>(setting.profile().layers.size());
  const auto devices = static_cast<int>(setting.cluster().devices.size());
  int longest = std::min(layers, devices);
  if (options.max_stages > 0) longest = std::min(longest, options.max_stages);
  const int replicas = options.max_replicas > 0 ? std::min(options.max_replicas, devices) : devices;
  const std::string depths = describe_chunks_and_depths(options);
  return fmt::format(
      "every cut into consecutive layers, a stage on one device, like groups of devices cut alike; "
      "pipelines of 1 to {}, up to {} of them; {}{}; micro-batches of {}, each dealt to the group "
      "that would end first; {}{}{}",
      count_of(longest, "device"), replicas, list_schedules(options),
      depths.empty() ? "" : ", " + depths, list_sizes(options.micro_batch_sizes),
      describe_devices(options, setting.cluster()),
      options.recompute ? "; with and without activation checkpointing everywhere" : "",
      options.cache ? "; with and without a cached prefix" : "");
}

// True for a plan that the bound does not speak of.
bool is_outside(const Candidate& candidate) {
  return has_shared_stage(candidate.plan.pipelines.front()) || has_searched_order(candidate.plan) ||
         candidate.plan.steps_ahead > 0;
}

// Compares the fastest plan, which lies outside the searched space, with what the space takes at
// least.
std::string compare_outside(Duration best, Duration at_least) {
  const std::string space = fmt::format(
      "no plan of the searched space takes less than {}; the fastest ", to_text(at_least));
  if (best <= at_least) return space + "lies outside of it and takes no more\n";
  return space + fmt::format("lies outside of it and takes {}\n", to_text(best));
}

std::string describe_shared(const SharedStages& shared) {
  if (shared.tried == 0) {
    return "outside of it: plans with stages on several devices, of which none was worth a try\n";
  }
  return fmt::format(
      "outside of it: plans with stages on several devices, for which no bound is claimed; of {} "
      "tried {}\n",
      shared.tried,
      shared.fastest ? "the fastest takes " + to_text(*shared.fastest) : std::string("none fits"));
}

std::string describe_ahead(const SearchedWindows& ahead, const SearchOptions& options) {
  if (ahead.tried == 0) {
    return "outside of it: plans whose devices are steps ahead of each other; no plan can be\n";
  }
  return fmt::format(
      "outside of it: plans whose devices are up to {} steps ahead of each other, for which no "
      "bound "
      "is claimed; of {} tried {}\n",
      options.steps_ahead, ahead.tried,
      ahead.fastest ? "the fastest takes " + to_text(*ahead.fastest) + " a step"
                    : std::string("none fits"));
}

// Returns the lines on what the search tried beside the space.
std::string describe_outside(const Ranking& ranking, const SearchOptions& options) {
  return (ranking.shared ? describe_shared(*ranking.shared) : "") +
         (ranking.ahead ? describe_ahead(*ranking.ahead, options) : "");
}

nlohmann::ordered_json time_or_null(const std::optional<Duration>& time) {
  return time ? nlohmann::ordered_json(time->count()) : nlohmann::ordered_json();
}

}  // namespace

bool has_proof(const Ranking& ranking) { return proof_of(ranking) != nullptr; }

std::string print_gap(const Ranking& ranking, const Candidate& candidate) {
  const SearchedCuts* proof = proof_of(ranking);
  const Duration makespan = candidate.makespan;
  if (proof == nullptr || makespan < proof->at_least || is_outside(candidate)) return "-";
  if (makespan == proof->at_least) return percent(0);
  const double above = gap(makespan, proof->at_least);
  return above < 0.00005 ? "< 0.01 %" : percent(above);
}

std::string print_proof(const Ranking& ranking, const SearchOptions& options, Setting setting) {
  const SearchedCuts* proof = proof_of(ranking);
  if (proof == nullptr) {
    return ranking.best() != nullptr ? describe_outside(ranking, options) : "";
  }
  const Candidate& fastest = *ranking.fastest();
  std::string text =
      is_outside(fastest) ? compare_outside(fastest.makespan, proof->at_least)
      : fastest.makespan > proof->at_least
          ? fmt::format(
                "no plan of the searched space takes less than {}; the fastest is {} above\n",
                to_text(proof->at_least), print_gap(ranking, fastest))
          : "proven: no plan of the searched space takes less than the fastest\n";
  if (ranking.best_alone) {
    text += "the plans beside the fastest are the best of those looked at\n";
  }
  text += fmt::format("searched space: {}\n", describe_space(options, setting));
  return text + describe_outside(ranking, options);
}

std::string proof_json(const Ranking& ranking, const SearchOptions& options, Setting setting) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (const SearchedCuts* proof = proof_of(ranking)) {
    json["at_least_ns"] = proof->at_least.count();
    const Candidate& fastest = *ranking.fastest();
    json["proven"] = fastest.makespan <= proof->at_least && !is_outside(fastest);
    json["only_fastest_proven"] = ranking.best_alone;
    json["searched_space"] = describe_space(options, setting);
  }
  if (ranking.shared) {
    json["shared_stages_tried"] = ranking.shared->tried;
    json["shared_stages_fastest_ns"] = time_or_null(ranking.shared->fastest);
  }
  if (ranking.ahead) {
    json["steps_ahead_tried"] = ranking.ahead->tried;
    json["steps_ahead_fastest_ns"] = time_or_null(ranking.ahead->fastest);
  }
  return json.dump();
}

}  // namespace frazil
