#include "planner/verbs/plan_held.h"

#include <fmt/format.h>

#include "planner/actions/validate_plan.h"
#include "planner/answers/print_replan.h"
#include "planner/plan/plan_json.h"
#include "planner/prediction/process_notes.h"
#include "planner/search/advice.h"
#include "planner/search/rankings/rank_plans.h"
#include "planner/verbs/cluster_flag.h"
#include "planner/verbs/plan_options.h"
#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "profiles/setting.h"

namespace frazil {

ExitCode plan_held(const Flags& values) {
  refuse_together(
      values, "--held",
      {"planner", "top", "explain", "effort", "noise", "devices", "states", "steps-ahead"});
  refuse_order_search(values, "--held");
  refuse_overwriting(named_files(values, {"profile", "cluster", "held"}),
                     named_files(values, {"out"}));
  const std::string file = required_text(values, "held");
  const ModelProfile profile = read_model_profile(required_text(values, "profile"));
  const Cluster cluster = read_given_cluster(values);
  const Setting setting{profile, cluster};
  HeldState held;
  held.plan = read_plan(file);
  validate(held.plan, setting, file, lines_of(file));
  held.steps = required_integer(values, "steps", 1, 1'000'000'000);
  held.trained = held.plan.mask;
  held.overhead.start = duration_or(values, "switch-time", Duration{0});
  SearchOptions options = without_efforts(read_options(values, profile));
  if (values.count("reduction") == 0) options.reduction = held.plan.reduction;
  if (held.plan.reduction != options.reduction) {
    throw InputError(file, lines_of(file)("$.reduction"), "a plan with the other reduction",
                     "one with --reduction " + required_text(values, "reduction"));
  }
  // A run with other micro-batches would not stay bitwise identical.
  if (values.count("micro-batch") == 0 && options.reduction == ReductionMode::kExact) {
    options.micro_batch_sizes = {held.plan.micro_batch_size};
  }
  if (held.plan.batch_size != options.batch_size) {
    throw InputError(file, lines_of(file)("$.batch_size"),
                     fmt::format("a batch of {}", held.plan.batch_size),
                     fmt::format("--batch {}", options.batch_size));
  }
  options.shared_effort = kSharedEffort;  // as frazil plan
  PlanSearch search(setting);
  const auto answer = replan(search, setting, held, options);
  if (!answer) {
    throw InfeasibleError(explain_no_plan(profile, {cluster, options}, search.search(options)));
  }
  Plan masked = held.plan;
  masked.mask = options.mask;
  const ReplanCase asked{
      held, judge_plan(masked, setting, {.clip = options.clip, .overlap = options.overlap}),
      *answer};
  const auto write = [&] {
    if (values.count("out") > 0)
      write_plan(with_question(answer->next.plan, options), required_text(values, "out"));
  };
  const std::vector<const Plan*> plans{&masked, &answer->next.plan};
  write_and_answer(write, is_set(values, "json")
                              ? with_commit_rounds(replan_json(asked), plans, cluster)
                              : print_replan(asked) + list_commit_rounds(plans, cluster));
  return ExitCode::kOk;
}

}  // namespace frazil
