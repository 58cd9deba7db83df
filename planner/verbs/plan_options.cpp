#include "planner/verbs/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "planner/bounds/shape.h"
#include "planner/interop/pytorch_menu.h"
#include "planner/plan/schedule_facts.h"
#include "planner/plan/step_window.h"
#include "planner/search/rankings/rank_plans.h"
#include "planner/verbs/known_words.h"
#include "planner/verbs/what_if_flags.h"
#include "profiles/known_names.h"

namespace frazil {
namespace {

constexpr const char* kQuestion = "timed_with";  // in a plan's provenance

std::string question_of(bool clip, bool overlap) {
  std::string flags = clip ? "--clip" : "";
  if (overlap) flags += flags.empty() ? "--overlap-reductions" : " --overlap-reductions";
  return flags;
}

struct ListedSchedules {
  std::vector<ScheduleKind> named;
  bool search = false;
};

// Returns the schedules that a word of the list stands for; none for `search`.
std::vector<ScheduleKind> find_schedules(const std::string& word) {
  std::vector<ScheduleKind> kinds;
  if (is_same_name(word, kPytorchWord)) {
    const std::vector<ScheduleKind> all = synchronous_schedules();
    std::copy_if(all.begin(), all.end(), std::back_inserter(kinds),
                 [](ScheduleKind kind) { return runs_in_pytorch(facts_of(kind)); });
  } else if (!is_same_name(word, kSearchWord)) {
    const auto kind = find_schedule(word);
    if (!kind) refuse_schedule("--schedules", word, "plan");
    kinds.push_back(*kind);
  }
  return kinds;
}

ListedSchedules list_schedules(const std::string& comma_list) {
  ListedSchedules listed;
  std::vector<ScheduleKind>& kinds = listed.named;
  const auto refuse_again = [&](bool is_listed) {
    if (is_listed) refuse_flags("--schedules " + comma_list, "each schedule once");
  };
  for (std::size_t begin = 0; begin <= comma_list.size();) {
    const std::size_t end = std::min(comma_list.find(',', begin), comma_list.size());
    const std::string name = comma_list.substr(begin, end - begin);
    if (name.empty()) {
      refuse_flags(fmt::format("--schedules `{}`", comma_list),
                   "a name on both sides of each comma");
    }
    if (is_same_name(name, kSearchWord)) {
      refuse_again(listed.search);
      listed.search = true;
    }
    for (const ScheduleKind kind : find_schedules(name)) {
      if (facts_of(kind).versions != WeightVersions::kSync) {
        refuse_flags("--schedules " + name,
                     "schedules that flush, which keep one version of weights");
      }
      refuse_again(std::find(kinds.begin(), kinds.end(), kind) != kinds.end());
      kinds.push_back(kind);
    }
    begin = end + 1;
  }
  if (kinds.empty()) kinds = synchronous_schedules();
  return listed;
}

ListedSchedules list_schedules(const Flags& values) {
  if (values.count("schedules") > 0) return list_schedules(required_text(values, "schedules"));
  return {synchronous_schedules(), false};
}

}  // namespace

std::vector<ScheduleKind> read_schedules(const Flags& values) {
  return list_schedules(values).named;
}

std::vector<std::string_view> list_schedule_words(bool with_search) {
  std::vector<std::string_view> words;
  for (const ScheduleKind kind : synchronous_schedules()) words.push_back(schedule_name(kind));
  words.push_back(kPytorchWord);
  if (with_search) words.push_back(kSearchWord);
  return words;
}

std::optional<OrderSearchOptions> read_order_search(const Flags& values) {
  constexpr int kMoves = 300'000;  // in a round; about a fifth of a CPU second for 8 stages
  if (!list_schedules(values).search) {
    if (values.count("budget") > 0) refuse_flags("--budget without --schedules search", "both");
    return std::nullopt;
  }
  OrderSearchOptions options;
  options.budget = integer_or(values, "budget", kMoves, 0, kMostMoves);
  return options;
}

void refuse_order_search(const Flags& values, const std::string& mode) {
  if (read_order_search(values)) {
    refuse_flags("--schedules search with " + mode, "one or the other");
  }
}

Plan with_question(Plan plan, const SearchOptions& options) {
  const std::string flags = question_of(options.clip, options.overlap.has_value());
  plan.provenance.erase(kQuestion);
  if (!flags.empty()) plan.provenance[kQuestion] = flags;
  return plan;
}

std::string print_other_question(const Plan& plan, const StepOptions& asked) {
  const auto said = plan.provenance.find(kQuestion);
  if (said == plan.provenance.end()) return "";
  if (said->second == question_of(asked.clip, asked.overlap.has_value())) return "";
  return fmt::format("the plan was found for a step with {}\n", said->second);
}

SearchOptions read_options(const Flags& values, const ModelProfile& profile) {
  SearchOptions options = ranking_options();
  options.batch_size = required_integer(values, "batch", 1, kMostCounted);
  options.micro_batch_sizes =
      values.count("micro-batch") > 0
          ? checked_flags("--micro-batch", required_text(values, "micro-batch"), 1,
                          options.batch_size)
          : measured_sizes(profile, options.batch_size);
  const auto blocks = static_cast<int>(profile.blocks.size());
  options.mask = FreezeMask::all_active(blocks);
  if (values.count("mask") > 0) {
    const std::string bits = required_text(values, "mask");
    if (bits.size() != profile.blocks.size()) {
      refuse_flags("--mask " + bits, fmt::format("a bit for each of {} blocks", blocks));
    }
    options.mask = FreezeMask::parse(bits, "command line", 0);
  }
  options.schedules = read_schedules(values);
  if (const auto mode = optional_text(values, "reduction")) {
    const bool is_fast = known_name("--reduction", *mode, kReductionWords) == "fast";
    options.reduction = is_fast ? ReductionMode::kFast : ReductionMode::kExact;
  }
  options.recompute = !is_set(values, "no-recompute");
  options.cache = is_set(values, "cache");
  if (is_set(values, "overlap-reductions")) options.overlap.emplace();
  options.max_stages = integer_or(values, "max-stages", 0, 1, kMostCounted);
  options.max_replicas = integer_or(values, "max-replicas", 0, 1, kMostCounted);
  options.clip = is_set(values, "clip");
  options.steps_ahead = integer_or(values, "steps-ahead", kDecoupledSteps, 0, kMostStepsAhead);
  if (values.count("gap") > 0) options.gap_ppm = required_percent_ppm(values, "gap");
  return options;
}

}  // namespace frazil
