// Implements frazil simulate: predicts what a schedule or a plan takes.

#include <fmt/format.h>
#include <functional>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "planner/actions/validate_plan.h"
#include "planner/answers/print_idle.h"
#include "planner/answers/print_messages.h"
#include "planner/answers/print_plan.h"
#include "planner/answers/print_ranking.h"
#include "planner/answers/ranking_json.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/schedule_facts.h"
#include "planner/plan/step_window.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/any_plan_bound.h"
#include "planner/prediction/contended_step.h"
#include "planner/verbs/changed_plan.h"
#include "planner/verbs/cluster_flag.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "planner/verbs/plan_options.h"
#include "planner/verbs/simulate_flags.h"
#include "planner/verbs/what_if_flags.h"
#include "planner/what_if/compare_schedules.h"
#include "planner/what_if/held_bytes.h"
#include "planner/what_if/plan_changes.h"
#include "planner/what_if/what_if_changes.h"
#include "planner/what_if/what_if_memory.h"
#include "profiles/model_profile_json.h"
#include "profiles/quantity_text.h"
#include "profiles/setting.h"
#include "profiles/text_file.h"
#include "traces/chrome_trace.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  describe_simulate(flags);
  return flags;
}

void list_schedules() {
  print_answer(fmt::format(
      "{}\nand with --plan, instead of fixed lists:\n"
      "fifo              what could start first, within the memory of its device\n"
      "priority          backwards first\n"
      "lrtf              what has the longest remaining time first\n"
      "\nand for stages in a line:\n"
      "search            the best order that a search finds, for --objective in --budget moves, in "
      "the memory of zb-1p\n",
      describe_schedules()));
}

void write_timelines(const Flags& values, const std::function<Timeline()>& make_timeline) {
  if (values.count("out") == 0 && values.count("chrome") == 0) return;
  const Timeline timeline = make_timeline();
  std::vector<NewFile> files;
  if (const auto out = optional_text(values, "out")) files.push_back({*out, to_csv(timeline)});
  if (const auto chrome = optional_text(values, "chrome")) {
    files.push_back({*chrome, to_chrome_json({{"predicted", &timeline}})});
  }
  write_text_files(files);
}

// Refuses a question whose answer would take more memory than --max-memory, before it takes any.
void refuse_memory(const Flags& values, const WhatIf& question, Bytes estimate) {
  constexpr Bytes kDefault{std::int64_t{4} << 30};
  const auto given = optional_text(values, "max-memory");
  const Bytes most = given ? parse_bytes(*given, "--max-memory") : kDefault;
  if (estimate <= most) return;
  const auto mebibytes = [](Bytes bytes) { return divide_up(bytes.count, std::int64_t{1} << 20); };
  refuse_flags(fmt::format("{} stages of {} micro-batches, which take some {} MiB of memory to "
                           "simulate",
                           question.stages, question.micro_batches, mebibytes(estimate)),
               fmt::format("at most {} MiB, or a larger --max-memory", mebibytes(most)));
}

ExitCode compare(const Flags& values) {
  refuse_with_compare(values);
  refuse_together(values, "--compare", {"change"});
  ComparisonOptions options;
  if (values.count("fits") > 0) {
    options.most_in_flight = required_integer(values, "fits", 1, kMostCounted);
  }
  const WhatIf question = read_what_if(values, {}, true);
  const int chunks = *std::max_element(options.chunks.begin(), options.chunks.end());
  refuse_memory(values, question, estimate_comparison(question, chunks));
  const std::vector<ComparedSchedule> compared = compare_schedules(question, options);
  const bool json = is_set(values, "json");
  print_answer(json ? comparison_json(compared) : print_comparison(compared));
  const bool any = std::any_of(compared.begin(), compared.end(),
                               [](const ComparedSchedule& row) { return row.reason.empty(); });
  if (any) return ExitCode::kOk;
  const bool some_made =
      std::any_of(compared.begin(), compared.end(),
                  [](const ComparedSchedule& row) { return row.most_in_flight > 0; });
  throw InfeasibleError(
      some_made && !options.most_in_flight
          ? "no schedule of the menu fits into " + required_text(values, "memory-limit")
      : some_made
          ? fmt::format("no schedule of the menu holds as little as {} on a device",
                        count_of(static_cast<std::int64_t>(*options.most_in_flight), "micro-batch"))
          : "no schedule of the menu can be made for these numbers");
}

void change(const Flags& values, ModelProfile& profile, Cluster& cluster) {
  if (values.count("change") == 0) return;
  std::vector<WhatIfChange> changes;
  for (const std::string& text : values["change"].as<std::vector<std::string>>()) {
    changes.push_back(parse_change(text, "--change"));
  }
  Measured changed = apply_changes(changes, {profile, cluster}, "--change");
  profile = std::move(changed.profile);
  cluster = std::move(changed.cluster);
}

struct Answer {
  std::string text;
  std::string json;
};

// Prints the answer with what else was asked for: one text, or one JSON object. Files are written
// once nothing can be refused any more. `make_timeline` makes that of the files, which may take
// much memory; `step` is the one step that is explained.
void finish_answer(const Flags& values, Answer answer,
                   const std::function<Timeline()>& make_timeline, const SimulatedStep& step,
                   const Plan& plan, Setting setting) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(answer.json);
  const auto add = [&](const std::string& more) {
    json.update(nlohmann::ordered_json::parse(more));
  };
  const ContentionOptions contention = read_contention(values);
  if (contention.any()) {
    const ContendedStep contended = simulate_contended(step.lowered, setting, contention);
    answer.text += print_contended(contended, contention);
    add(contended_json(contended, contention));
  }
  if (is_set(values, "explain")) {
    if (plan.steps_ahead > 0) answer.text += "\nOf one step by itself:\n";
    answer.text += print_explanation(step, setting);
    add(explanation_json(step, setting));
  }
  if (is_set(values, "messages")) {
    answer.text += print_messages(plan, setting);
    add(messages_json(plan, setting));
  }
  write_and_answer([&] { write_timelines(values, make_timeline); },
                   is_set(values, "json") ? json.dump() + "\n" : answer.text);
}

ExitCode simulate_what_if(const Flags& values) {
  refuse_together(values, "--stages",
                  {"plan", "profile", "cluster", "procs", "clip", "overlap-reductions", "bucket",
                   "wait-for-memory"});
  refuse_contention_of_what_if(values);
  if (is_set(values, "compare")) return compare(values);
  if (values.count("fits") > 0) refuse_flags("--fits without --compare", "both");
  const WhatIf what_if = read_what_if(values, {});
  WhatIfInputs inputs = make_what_if(what_if);
  refuse_memory(values, what_if,
                estimate_memory(what_if, {.timeline = values.count("out") > 0,
                                          .chrome = values.count("chrome") > 0,
                                          .messages = is_set(values, "messages")}));
  change(values, inputs.profile, inputs.cluster);
  const std::optional<SearchedOrder> searched = search_what_if(what_if, inputs);
  const SimulatedStep step = simulate_what_if(inputs);
  const WhatIfAnswer answer = answer_what_if(inputs, step, searched, what_if.memory);
  const auto devices = static_cast<int>(inputs.cluster.devices.size());
  finish_answer(values, {print_what_if(what_if, answer), what_if_json(what_if, answer)},
                [&] { return summarize(step, devices).timeline; }, step, inputs.plan,
                {inputs.profile, inputs.cluster});
  if (!what_if.memory || !what_if.memory->limit) return ExitCode::kOk;
  const auto excess = find_excess(*what_if.memory, answer.peak_bytes);
  if (excess) {
    throw InfeasibleError("the schedule does not fit: " + *excess +
                          tell_full_count(*what_if.memory, what_if.schedule));
  }
  return ExitCode::kOk;
}

// Ranks every schedule on the plan's stages.
ExitCode compare_on_plan(const Flags& values, const Plan& plan, Setting setting) {
  const Ranking ranking = compare_schedules(plan, setting, is_set(values, "clip"));
  const auto all = static_cast<int>(ranking.candidates.size());
  print_answer(is_set(values, "json") ? ranking_json(ranking, setting, all)
                                      : print_ranking(ranking, setting, all));
  if (ranking.best() == nullptr) throw InfeasibleError(explain_infeasible(ranking));
  return ExitCode::kOk;
}

// Says why devices wait for each other although the plan would let them go ahead.
std::string tell_in_step(const Plan& plan, Setting setting, const StepOptions& options) {
  const auto why = explain_in_step(plan, find_step_meetings(plan, setting, options));
  return why ? "note: " + *why + "\n" : "";
}

ExitCode simulate_file(const Flags& values) {
  refuse_together(
      values, "--plan",
      {"stages", "max-memory", "forward", "backward-input", "backward-weight", "backward", "hop",
       "chunks", "fits", "activation", "stage-input", "state", "memory-limit"});
  const std::string file = required_text(values, "plan");
  ModelProfile profile = read_model_profile(required_text(values, "profile"));
  Cluster cluster = read_given_cluster(values);
  const Plan given = read_plan(file);
  validate(given, {profile, cluster}, file, lines_of(file));
  change(values, profile, cluster);
  const Setting setting{profile, cluster};
  const bool compares = is_set(values, "compare");
  if (compares) refuse_with_compare(values);
  const StepOptions options = read_step_options(values, given);
  const ChangedPlan changed = change_plan(values, given, setting, options);
  const Plan& plan = changed.plan;
  if (compares) return compare_on_plan(values, plan, setting);
  const SimulatedStep step = simulate_step(plan, setting, options);
  const PlanSimulation simulation =
      simulate_window(step, count_window(plan, setting, options), setting);
  const PlanBounds bounds = find_bounds(plan, setting);
  const LowerBound any_plan = bound_any_plan(plan, setting);
  const SimulatedPlan simulated{plan, setting, simulation, bounds, any_plan, options.overlap};
  const std::string text = print_simulation(simulated) + tell_in_step(plan, setting, options) +
                           changed.searched + print_other_question(given, options);
  finish_answer(
      values, {text, simulation_json(simulated)}, [&] { return simulation.timeline; }, step, plan,
      setting);
  // What waits for room makes do with the memory that there is, or has been refused.
  if (!is_set(values, "wait-for-memory")) refuse_overflow(simulation.memory, cluster, file);
  return ExitCode::kOk;
}

ExitCode simulate_verb(const Flags& values) {
  if (optional_text(values, "schedule") == "help") {
    list_schedules();
    return ExitCode::kOk;
  }
  refuse_overwriting(named_files(values, {"plan", "profile", "cluster"}),
                     named_files(values, {"out", "chrome"}));
  if (values.count("plan") > 0) return simulate_file(values);
  if (values.count("stages") == 0) refuse_flags("neither --plan nor --stages", "one of them");
  return simulate_what_if(values);
}

int run_simulate_verb(int argc, char** argv) {
  const Verb verb{
      "simulate",
      "Predicts how long a plan, or a schedule given by per-stage forward and backward durations, "
      "takes.",
      "frazil simulate --stages N --micro-batches N --schedule NAME --forward TIME\n"
      "         --backward TIME [--hop TIME] [--in-flight N] [--activation SIZE --memory-limit "
      "SIZE]\n"
      "   or: frazil simulate --plan FILE --profile FILE --cluster FILE [--schedule NAME]\n"
      "         [--micro-batches N]"};
  return run_verb(verb, argc, argv, describe_flags(), simulate_verb);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_simulate_verb(argc, argv); }
