#include "analysis/ablation/predict/simulate_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/ablation/predict/print_prediction.h"
#include "planner/prediction/answer_parts.h"
#include "planner/verbs/cluster_flag.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/forecast_file.h"
#include "planner/verbs/known_words.h"
#include "planner/verbs/plan_options.h"
#include "planner/verbs/store_flags.h"
#include "profiles/model_profile_json.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

// How a line of notes begins that other answers print too.
constexpr std::string_view kNoteWord = "note: ";

constexpr int kMostSeed = 1'000'000'000;

void note_cache(const Flags& values, const FeatureStore& store, int hosts, int batch,
                std::vector<std::string>& notes) {
  for (const char* tier : {"memory", "disk"}) {
    const std::string flag = fmt::format("cache-{}", tier);
    if (values.count(flag) == 0 || values.count(flag + "-bandwidth") > 0) continue;
    notes.push_back(fmt::format("the rate of the cache (--{}-bandwidth) is the default", flag));
  }
  if (hosts > 1) {
    notes.push_back(fmt::format(
        "the times are those of one cache that all pipelines share; pipelines on {} hosts share "
        "none, and find fewer samples",
        hosts));
  }
  if (const std::int64_t rest = store.samples % batch; rest > 0) {
    notes.push_back(
        fmt::format("the last step of an epoch has {} of {} samples and is charged as a whole one",
                    rest, batch));
  }
  notes.push_back(
      fmt::format("pipetransformer caches from {} frozen layers on, as its code does "
                  "for ViT",
                  kPipeTransformerCachesFrom));
}

// Lists what the answer takes for given because no flag says otherwise.
std::vector<std::string> list_notes(const Flags& values, const AblationQuestion& question,
                                    const Cluster& cluster) {
  std::vector<std::string> notes;
  const PredictionRules& rules = question.rules;
  if (rules.store) {
    std::set<HostId> hosts;
    for (const Device& device : cluster.devices) hosts.insert(device.host);
    note_cache(values, *rules.store, static_cast<int>(hosts.size()), rules.search.batch_size,
               notes);
  } else {
    notes.emplace_back("no arm caches: neither --cache-memory nor --cache-disk is given");
  }
  if (values.count("switch-time") == 0) {
    notes.emplace_back("beside moving state a transition is taken to cost nothing (--switch-time)");
  }
  const std::vector<std::string> measured = tell_measured_costs(question.forecast);
  notes.insert(notes.end(), measured.begin(), measured.end());
  if (!measured.empty()) {
    notes.emplace_back(
        "arms that change plans know these costs ahead; the others, and pipetransformer, have the "
        "plans that the profile and the cluster gave them, and all arms' steps take the measured "
        "costs");
  }
  notes.push_back(fmt::format("random-masks draws its blocks with --seed {}", question.seed));
  if (rules.noise_ppm > 0) {
    notes.push_back(
        fmt::format("first plans, that of unfrozen too, are the simplest within {} % of "
                    "the fastest (--noise)",
                    static_cast<double>(rules.noise_ppm) / 10'000));
  }
  if (const std::string free = list_free_links(cluster); !free.empty()) {
    notes.push_back(free.substr(kNoteWord.size(), free.size() - kNoteWord.size() - 1));
  }
  return notes;
}

AblationQuestion read_question(const Flags& values, Setting setting) {
  const ModelProfile& profile = setting.profile();
  const std::string file = required_text(values, "forecast");
  const FreezeTrace trace = read_forecast(file, profile);
  AblationQuestion question;
  PredictionRules& rules = question.rules;
  rules.search = read_options(values, profile);
  rules.search.steps_ahead = 0;  // the plans that a run makes wait after each step
  refuse_other_batch(trace, file, rules.search.batch_size);
  question.forecast = read_segments(trace, file, setting);
  if (values.count("noise") > 0) rules.noise_ppm = required_percent_ppm(values, "noise");
  rules.plans_per_mask = integer_or(values, "plans-per-mask", 3, 1, kMostCounted);
  rules.overhead.start = duration_or(values, "switch-time", Duration{0});
  rules.store = read_store(values);
  question.seed = static_cast<std::uint64_t>(integer_or(values, "seed", 1, 0, kMostSeed));
  return question;
}

}  // namespace

void add_simulate_arms_flags(po::options_description& flags) {
  flags.add_options()  //
      ("simulate", po::bool_switch(),
       "predict the arms from a profile, a cluster and a freeze trace; nothing is trained")    //
      ("forecast", text_value("FILE"), "with --simulate: a freeze trace, the policy's masks")  //
      ("batch", text_value("N"), "with --simulate: samples of a step")                         //
      ("micro-batch", text_value("LIST"),
       "with --simulate: sizes to try, a comma list; default: the powers of two that were "
       "measured")  //
      ("schedules", known_value("LIST", list_schedule_words(/*with_search=*/false)),
       "with --simulate: schedules to try, a comma list; default: all that are synchronous")  //
      ("reduction", known_value("MODE", kReductionWords),
       "with --simulate: exact or fast; default exact")  //
      ("overlap-reductions", po::bool_switch(),
       "with --simulate: reductions begin while backwards still run")  //
      ("clip", po::bool_switch(),
       "with --simulate: steps with a global gradient norm: a barrier before updates")  //
      ("no-recompute", po::bool_switch(),
       "with --simulate: keep activations, never recompute them")                       //
      ("max-stages", text_value("N"), "with --simulate: most stages of a pipeline")     //
      ("max-replicas", text_value("N"), "with --simulate: most pipelines, of any arm")  //
      ("noise", text_value("PERCENT"),
       "with --simulate: of first plans, as plan takes it, default 1")                            //
      ("plans-per-mask", text_value("N"), "with --simulate: candidates of each mask, default 3")  //
      ("switch-time", text_value("TIME"),
       "with --simulate: fixed cost of changing plans, besides moving state (default 0 ms)")  //
      ("seed", text_value("N"), "with --simulate: of the masks that are drawn, default 1");
  add_store_flags(flags);
}

ExitCode simulate_arms(const Flags& values) {
  refuse_order_search(values, "ablate");
  const ModelProfile profile = read_model_profile(required_text(values, "profile"));
  const Cluster cluster = read_given_cluster(values);
  const Setting setting{profile, cluster};
  const AblationQuestion question = read_question(values, setting);
  const PredictedAblation ablation = predict_ablation(setting, question);
  const PredictionAnswer answer{ablation, setting, question.seed,
                                list_notes(values, question, cluster)};
  print_answer(is_set(values, "json") ? prediction_json(answer) : print_prediction(answer));
  const bool none = std::none_of(ablation.runs.begin(), ablation.runs.end(),
                                 [](const PredictedRun& run) { return run.fits(); });
  if (none) {
    throw InfeasibleError("no arm has a plan that fits: " + ablation.run_of(Arm::kUnfrozen).reason);
  }
  return ExitCode::kOk;
}

}  // namespace frazil
