// Implements frazil plan: finds the best pipeline for a model on a cluster.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "planner/answers/print_advice.h"
#include "planner/answers/print_comparison.h"
#include "planner/answers/print_explained_plan.h"
#include "planner/answers/print_proof.h"
#include "planner/answers/print_ranking.h"
#include "planner/answers/print_searched_orders.h"
#include "planner/answers/ranking_json.h"
#include "planner/bounds/shape.h"
#include "planner/named/named_planner.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/process_notes.h"
#include "planner/prediction/simplicity.h"
#include "planner/search/explain_plan.h"
#include "planner/search/rankings/rank_plans.h"
#include "planner/search/rankings/searched_orders.h"
#include "planner/verbs/cluster_flag.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "planner/verbs/known_words.h"
#include "planner/verbs/plan_forecast.h"
#include "planner/verbs/plan_graph.h"
#include "planner/verbs/plan_held.h"
#include "planner/verbs/plan_options.h"
#include "planner/verbs/store_flags.h"
#include "profiles/model_profile_json.h"
#include "profiles/setting.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  flags.add_options()                                          //
      ("profile", text_value("FILE"), "profile of the model")  //
      ("cluster", text_value("FILE"), "the cluster")           //
      ("batch", text_value("N"), "samples of a step")          //
      ("micro-batch", text_value("LIST"),
       "sizes to try, a comma list; default: the powers of two that were measured")  //
      ("mask", text_value("BITS"),
       "freeze mask, a bit per block, 1 = active; default: all active")  //
      ("schedules", known_value("LIST", list_schedule_words(/*with_search=*/true)),
       "schedules to try, a comma list; help lists them; default: all that are synchronous; with "
       "`search` among them the order of work is searched too, for the best plans that split their "
       "backwards")  //
      ("budget", text_value("N"),
       "with --schedules search: moves to try for each order, default 300000")       //
      ("no-recompute", po::bool_switch(), "keep activations, never recompute them")  //
      ("cache", po::bool_switch(),
       "also plans that read the frozen prefix's output from a cache")  //
      ("reduction", known_value("MODE", kReductionWords),
       "exact: weights are bitwise identical under every plan; or fast: gradients take less "
       "memory; default exact, of a held plan its own")  //
      ("overlap-reductions", po::bool_switch(),
       "reductions begin while backwards still run")  //
      ("max-stages", text_value("N"),
       "most stages of a pipeline, each chunk of a device counted")  //
      ("max-replicas", text_value("N"),
       "most pipelines, and most devices of a stage; default: as many as fit")  //
      ("effort", text_value("N"),
       "end with what is found after bounding the cuts of so many plans, default 100000; 0: bound "
       "all, and search faster cuts a hundred times as long")  //
      ("gap", text_value("PERCENT"),
       "end when the best is proven to be within so many percent of the least; default 0")  //
      ("noise", text_value("PERCENT"),
       "plans that differ by no more are equally fast, and the simplest stands first; default 1; "
       "0: the fastest first; not with --forecast, --held or --planner, which go by time alone")  //
      ("clip", po::bool_switch(), "steps with a global gradient norm: a barrier before updates")  //
      ("steps-ahead", text_value("N"),
       "for a model of several losses, as a distillation: devices may be so many steps ahead of "
       "each other; default 31; 0: they wait after each step; not with --forecast or --held")  //
      ("forecast", text_value("FILE"),
       "a freeze trace: plan which plan to hold when, transitions included")  //
      ("held", text_value("FILE"),
       "a plan that executes: whether to go on with it or to change to another, under --mask")  //
      ("steps", text_value("N"),
       "with --held: steps to come, over which a transition has to pay")                          //
      ("plans-per-mask", text_value("N"), "with --forecast: candidates of each mask, default 3")  //
      ("switch-time", text_value("TIME"),
       "with --forecast or --held: fixed cost of changing plans, besides moving state (default 0 "
       "ms)")  //
      ("decide-every", text_value("N"),
       "with --forecast: steps between looks of the rule that knows no forecast, default 1")  //
      ("planner", known_value("NAME", all_planner_names()),
       "plan as another system does, and compare with the best plan; help lists them")  //
      ("out", text_value("FILE"),
       "write the best plan; with --forecast: a file for each plan held, numbered by its first "
       "step")                                              //
      ("top", text_value("N"), "rows to show, default 10")  //
      ("explain", po::bool_switch(),
       "also why: the runner-up, where the time goes, what was rejected; where nothing fits, what "
       "came nearest and what would help")  //
      ("json", po::bool_switch(), "answer in JSON");
  describe_processes(flags);
  add_store_flags(flags);
  add_graph_flags(flags);
  return flags;
}

// Says, behind the sentence that nothing fits, that the file of --out is as it was; "" without
// --out.
std::string tell_unwritten(const Flags& values) {
  const auto out = optional_text(values, "out");
  return out ? fmt::format("; --out {} is not written", *out) : "";
}

// Implements --planner NAME: judges and writes that planner's plan, and prints it beside the best
// plan of the search.
ExitCode compare_planner(const Flags& values, const std::string& name) {
  refuse_together(values, "--planner", {"top", "explain", "effort", "gap", "cache", "noise"});
  refuse_order_search(values, "--planner");
  const auto planner = find_planner(name);
  if (!planner) known_name("--planner", name, all_planner_names());
  if (values.count("micro-batch") > 0 && chooses_its_micro_batches(*planner)) {
    refuse_flags("--micro-batch with --planner " + name, "one or the other: it chooses its own");
  }
  const ModelProfile profile = read_model_profile(required_text(values, "profile"));
  const Cluster cluster = read_given_cluster(values);
  const SearchOptions options = read_options(values, profile);
  const JudgedPlan judged = judge_named_planner(*planner, {profile, cluster}, options);
  const Candidate& named = judged.candidate;
  PlanSearch search({profile, cluster});
  const Ranking ranking = rank_plans(search, options, 0);
  const PlannerComparison comparison{*planner, judged, ranking.best(), profile};
  const auto write = [&] {
    if (!named.infeasible && values.count("out") > 0) {
      write_plan(with_question(named.plan, options), required_text(values, "out"));
    }
  };
  std::vector<const Plan*> plans;
  if (!named.infeasible) plans.push_back(&named.plan);
  if (ranking.best() != nullptr) plans.push_back(&ranking.best()->plan);
  write_and_answer(write, is_set(values, "json")
                              ? with_commit_rounds(comparison_json(comparison), plans, cluster)
                              : print_comparison(comparison) + list_commit_rounds(plans, cluster));
  if (named.infeasible) {
    const char* instead = ranking.best() != nullptr
                              ? "without --planner there is a plan that fits"
                              : "no plan fits; without --planner the answer says what would help";
    throw InfeasibleError(fmt::format("the plan of {} cannot run: {}; {}{}", name,
                                      named.infeasible->reason, instead, tell_unwritten(values)));
  }
  return ExitCode::kOk;
}

// Collects what stands below the ranking: as text, and as members of the answer in JSON.
class Besides {
 public:
  void add(const std::string& text, const std::string& json) {
    text_ += text;
    json_.update(nlohmann::ordered_json::parse(json));
  }
  const std::string& text() const { return text_; }
  std::string json() const { return json_.dump(); }

 private:
  std::string text_;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

// Prints the ranking with what else was asked for, and writes the best plan. Throws InfeasibleError
// if nothing fits, when the answer is out.
ExitCode answer(const Flags& values, const ModelProfile& profile, const SearchCase& question,
                Ranking ranking, Besides besides) {
  const Cluster& cluster = question.cluster;
  const Setting setting{profile, cluster};
  const SearchOptions& options = question.options;
  const int top = integer_or(values, "top", 10, 1, kMostCounted);
  const Candidate* best = ranking.best();
  std::vector<Advice> all_advice;
  std::vector<Candidate> relieved;
  if (best == nullptr) {
    all_advice = find_advice(profile, question, ranking);
    relieved = find_relieved(profile, question, all_advice);
    if (!relieved.empty() && !relieved.front().infeasible) {
      // It fits as it is: the search had missed it.
      ranking.candidates = std::exchange(relieved, {});
      all_advice.clear();
      best = ranking.best();
    }
  }
  if (is_set(values, "explain")) {
    SearchOptions shown = options;
    shown.keep = std::max(2, top);
    Ranking by_time = ranking;
    rank(by_time.candidates);
    const std::vector<Candidate>& nearest = relieved.empty() ? ranking.candidates : relieved;
    const Candidate* named = best == nullptr && !nearest.empty() ? &nearest.front() : nullptr;
    const PlanExplanation explanation = explain_plan(by_time, setting, shown, named);
    const bool is_other = best != nullptr && by_time.best()->plan != best->plan;
    besides.add(
        (is_other ? "\nexplained are the fastest plans, of which rank 1 is not one:\n" : "") +
            print_plan_explanation(explanation, cluster),
        plan_explanation_json(explanation, cluster));
  }
  if (best == nullptr) {
    besides.add(is_set(values, "explain") ? print_advice(all_advice, cluster) : "",
                advice_json(all_advice, cluster));
    if (!relieved.empty()) ranking.candidates = std::move(relieved);
  }
  const auto write = [&] {
    if (best != nullptr && values.count("out") > 0) {
      write_plan(with_question(best->plan, options), required_text(values, "out"));
    }
  };
  write_and_answer(write, is_set(values, "json")
                              ? ranking_json(ranking, setting, top, besides.json())
                              : print_ranking(ranking, setting, top) + besides.text());
  if (best == nullptr) {
    throw InfeasibleError(explain_no_plan(profile, question, ranking, all_advice) +
                          tell_unwritten(values));
  }
  return ExitCode::kOk;
}

ExitCode plan_verb(const Flags& values) {
  if (values.count("graph") > 0) return plan_graph_verb(values);
  if (values.count("planner") > 0 && required_text(values, "planner") == "help") {
    print_answer(list_planners());
    return ExitCode::kOk;
  }
  if (optional_text(values, "schedules") == "help") {
    print_answer(describe_schedules(/*synchronous_alone=*/true) +
                 "\nand beside them:\n"
                 "pytorch           all of these that PyTorch's runtime takes (frazil export)\n"
                 "search            the best orders that a search finds, for the best plans that "
                 "split their backwards\n");
    return ExitCode::kOk;
  }
  if (values.count("forecast") > 0) return plan_forecast(values);
  for (const char* flag : {"plans-per-mask", "decide-every"}) {
    if (values.count(flag) > 0) refuse_flags(fmt::format("--{} without --forecast", flag), "both");
  }
  if (values.count("held") > 0) return plan_held(values);
  if (values.count("steps") > 0) refuse_flags("--steps without --held", "both");
  if (values.count("switch-time") > 0) {
    refuse_flags("--switch-time without --forecast or --held", "one of them");
  }
  refuse_store_flags(values, "--forecast");
  refuse_together(values, "--profile", {"devices", "states"});
  refuse_overwriting(named_files(values, {"profile", "cluster"}), named_files(values, {"out"}));
  if (values.count("planner") > 0) return compare_planner(values, required_text(values, "planner"));
  const int top = integer_or(values, "top", 10, 1, kMostCounted);
  const std::optional<OrderSearchOptions> order_search = read_order_search(values);
  const ModelProfile profile = read_model_profile(required_text(values, "profile"));
  SearchCase question{read_given_cluster(values), {}};
  question.options = read_options(values, profile);
  // A small `top` does not reduce the plans kept, so that the first row does not depend on how many
  // are shown.
  question.options.keep = std::max(question.options.keep, top);
  if (values.count("effort") > 0) {
    question.options.effort = required_integer(values, "effort", 0, kMostCounted);
    if (question.options.effort == 0) question.options.cut_effort = kPatientCutEffort;
  }
  const std::int64_t noise_ppm =
      values.count("noise") > 0 ? required_percent_ppm(values, "noise") : kNoisePpm;
  const Setting setting{profile, question.cluster};
  PlanSearch search(setting);
  Ranking ranking = rank_plans(search, question.options, noise_ppm);
  std::vector<ShapeOrder> orders;
  if (order_search) {
    orders = search_orders(setting, question.options, *order_search);
    add_orders(ranking, orders);
    prefer_simplest(ranking, noise_ppm);
  }
  Besides besides;
  besides.add(print_proof(ranking, question.options, setting),
              proof_json(ranking, question.options, setting));
  if (ranking.cuts && ranking.cuts->faster > 0) {
    besides.add(fmt::format("a search by simulated time improved the stage boundaries of {}\n",
                            count_of(ranking.cuts->faster, "plan")),
                fmt::format(R"({{"moved_cuts": {}}})", ranking.cuts->faster));
  }
  if (order_search) besides.add(print_orders(orders), orders_json(orders));
  return answer(values, profile, question, std::move(ranking), std::move(besides));
}

int run_plan_verb(int argc, char** argv) {
  const Verb verb{
      "plan",
      "Finds the best pipeline for a model on a cluster, or the best contiguous split of "
      "a work graph.",
      "frazil plan --profile FILE --cluster FILE --batch N [--out plan.json]\n"
      "   or: frazil plan ... --forecast freezing.jsonl\n"
      "   or: frazil plan ... --held plan.json --mask BITS --steps N\n"
      "   or: frazil plan ... --planner NAME\n"
      "   or: frazil plan --graph FILE [--devices K] [--states N]"};
  return run_verb(verb, argc, argv, describe_flags(), plan_verb);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_plan_verb(argc, argv); }
