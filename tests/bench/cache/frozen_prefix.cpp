// clang-format off
// Measures what freezing a prefix gains in speed, beside what the profile allows. The model is
// profiled; the planner makes a plan for each prefix, so stages are balanced anew; the plans run in
// rounds, in an order drawn anew each time. k frozen layers are the embedding and the first k
// transformer layers.
//   measured gain  step with nothing frozen / step with k frozen, mean steps of one round; the
//                  median over the rounds and its 95 % bootstrap interval
//   allowed gain   that ratio of the plans' simulated steps, from the profile's F, I and W
//   share          measured / allowed; the bar is met or missed when the whole interval says so
// clang-format on

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "analysis/ratio_interval.h"
#include "analysis/tables/table.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/train/progress.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/search/search.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"
#include "tests/bench/transitions/plan_trials.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kDevices = 2;
constexpr double kBar = 0.95;

struct Options {
  BenchModel model;
  std::vector<int> frozen;  // ascending, begins with 0
  int micro_batches = 8;
  std::string plans = "any";
  int rounds = 12;
  Stretch stretch;
  int profile_rounds = 4;
  std::uint64_t seed = 1;
  bool json = false;
  bool quiet = false;
};

// The results of one k: what was planned, predicted and measured.
struct Prefix {
  int frozen = 0;
  Plan plan;
  double predicted = 0;         // seconds of a step
  std::vector<double> seconds;  // mean step of each round
};

struct Answer {
  std::vector<Prefix> prefixes;
  std::optional<double> others;  // cores kept busy by other programs during the rounds
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "tiny (default) or wide"},
       {"frozen",
        "transformer layers frozen, a comma list; default 0,4,8,12, of wide 0,4,8; 0 is always "
        "there"},
       {"plans", "any (default), pipeline (two stages) or replicas (two of one stage)"},
       {"micro-batches", "of a step, a divisor of the batch (64, of wide 32), default 8"},
       {"rounds", "of all plans, default 12"},
       {"steps", "timed of each plan and round, default 6"},
       {"warmup", "steps before them that do not count, default 2"},
       {"profile-rounds", "of 8 steps, and of 4 with all layers frozen; default 4"},
       {"seed", "of weights, data, orders and intervals, default 1"}},
      {{"quiet", "no progress"}, {"json", "one JSON line for each prefix"}});
}

std::vector<int> read_frozen(const Flags& flags, int layers) {
  std::vector<int> frozen;
  if (const auto list = optional_text(flags, "frozen")) {
    frozen = checked_flags("--frozen", *list, 0, layers);
  } else {
    for (int k = 4; k <= layers; k += 4) frozen.push_back(k);
  }
  std::set<int> sorted(frozen.begin(), frozen.end());
  sorted.insert(0);
  return {sorted.begin(), sorted.end()};
}

Options read_options(const Flags& flags) {
  Options options;
  options.model = find_bench_model(optional_text(flags, "model").value_or("tiny"));
  options.frozen = read_frozen(flags, options.model.config.blocks);
  options.plans = optional_text(flags, "plans").value_or(options.plans);
  if (options.plans != "any" && options.plans != "pipeline" && options.plans != "replicas") {
    refuse_flags("--plans " + options.plans, "any, pipeline or replicas");
  }
  const int batch = options.model.batch_size;
  options.micro_batches =
      integer_or(flags, "micro-batches", options.micro_batches, kDevices, batch);
  if (batch % options.micro_batches != 0) {
    refuse_flags("--micro-batches " + std::to_string(options.micro_batches),
                 "a divisor of " + std::to_string(batch));
  }
  options.rounds = integer_or(flags, "rounds", options.rounds, 1, 10'000);
  options.stretch.steps = integer_or(flags, "steps", options.stretch.steps, 1, 10'000);
  options.stretch.warm_up = integer_or(flags, "warmup", options.stretch.warm_up, 0, 10'000);
  options.profile_rounds = integer_or(flags, "profile-rounds", options.profile_rounds, 1, 10'000);
  options.seed = read_seed(flags);
  options.json = is_set(flags, "json");
  options.quiet = is_set(flags, "quiet");
  return options;
}

bool is_wanted(const Plan& plan, const std::string& plans) {
  const std::size_t stages = plan.pipelines.front().stages.size();
  if (plans == "pipeline") return plan.pipelines.size() == 1 && stages == kDevices;
  if (plans == "replicas") return plan.pipelines.size() == kDevices && stages == 1;
  return true;
}

Prefix plan_prefix(int frozen, const MeasuredProfile& measured, const RunConfig& config,
                   const std::string& plans) {
  const auto blocks = static_cast<int>(measured.profile.blocks.size());
  SearchOptions search;
  search.batch_size = config.batch_size;
  search.micro_batch_sizes = {config.micro_batch_size};
  search.mask = frozen == 0 ? FreezeMask::all_active(blocks)
                            : FreezeMask::frozen_prefix(blocks, BlockId{frozen});
  const Ranking ranking = search_plans({measured.profile, measured.cluster}, search);
  const auto best = std::find_if(ranking.candidates.begin(), ranking.candidates.end(),
                                 [&](const Candidate& candidate) {
                                   return !candidate.infeasible && is_wanted(candidate.plan, plans);
                                 });
  if (best == ranking.candidates.end()) {
    throw InfeasibleError("no plan of the kind " + plans + " for " + std::to_string(frozen) +
                          " frozen layers");
  }
  return {.frozen = frozen,
          .plan = best->plan,
          .predicted = std::chrono::duration<double>(best->makespan).count(),
          .seconds = {}};
}

Answer measure(const Options& options) {
  PlanTrials trials(options.model, options.micro_batches, options.seed, kDevices);
  Progress profiling("profile", options.profile_rounds + 1, options.quiet, "rounds");
  const MeasuredProfile measured =
      trials.measure(options.profile_rounds, [&](int done, int) { profiling.update(done, ""); });
  Answer answer;
  for (const int frozen : options.frozen) {
    answer.prefixes.push_back(plan_prefix(frozen, measured, trials.config(), options.plans));
  }
  Progress running("plans", options.rounds, options.quiet, "rounds");
  const ForeignLoad load;
  for (int round = 0; round < options.rounds; ++round) {
    for (const std::size_t i : draw_order(answer.prefixes.size(), options.seed, round)) {
      Prefix& prefix = answer.prefixes[i];
      prefix.seconds.push_back(trials.time_steps(prefix.plan, options.stretch));
    }
    running.update(round + 1, "");
  }
  answer.others = load.cores();
  return answer;
}

struct Gain {
  RatioInterval measured;
  double allowed = 1;

  double share(double gain) const { return gain / allowed; }
  std::string verdict() const {
    if (share(measured.low) >= kBar) return "met";
    return share(measured.high) < kBar ? "missed" : "undecided";
  }
};

Gain find_gain(const Prefix& none, const Prefix& prefix, std::uint64_t seed) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < none.seconds.size(); ++round) {
    ratios.push_back(none.seconds[round] / prefix.seconds[round]);
  }
  return {.measured = bootstrap_ratio(ratios, seed), .allowed = none.predicted / prefix.predicted};
}

std::string print_answer(const Answer& answer, const Options& options) {
  Table table{
      {"k", "plan", "predicted ms", "measured ms (least to most)", "measured gain (95 % interval)",
       "allowed gain", "share (95 % interval)", "bar " + fixed(kBar, 2)},
      {}};
  for (const Prefix& prefix : answer.prefixes) {
    const Gain gain = find_gain(answer.prefixes.front(), prefix, options.seed);
    const Spread spread = find_spread(prefix.seconds);
    const RatioInterval& seen = gain.measured;
    table.rows.push_back(
        {std::to_string(prefix.frozen), summarize(prefix.plan), fixed(prefix.predicted * 1e3, 1),
         to_range_text(spread.median * 1e3, spread.least * 1e3, spread.most * 1e3, 1),
         prefix.frozen == 0 ? "" : to_range_text(seen.median, seen.low, seen.high, 3),
         prefix.frozen == 0 ? "" : fixed(gain.allowed, 3),
         prefix.frozen == 0 ? ""
                            : to_range_text(gain.share(seen.median), gain.share(seen.low),
                                            gain.share(seen.high), 3),
         prefix.frozen == 0 ? "" : gain.verdict()});
  }
  return to_text(table) + options.model.name + ", " + std::to_string(options.rounds) +
         " rounds of " + std::to_string(options.stretch.steps) + " steps of each plan; " +
         to_load_text(answer.others) + "\n";
}

nlohmann::ordered_json to_json(const Prefix& prefix, const Answer& answer, const Options& options) {
  const Gain gain = find_gain(answer.prefixes.front(), prefix, options.seed);
  const Spread spread = find_spread(prefix.seconds);
  const RatioInterval& seen = gain.measured;
  nlohmann::ordered_json line{
      {"model", options.model.name},
      {"frozen", prefix.frozen},
      {"plan", summarize(prefix.plan)},
      {"mask", prefix.plan.mask.text()},
      {"micro_batches", options.micro_batches},
      {"predicted_s", prefix.predicted},
      {"measured_s", {{"median", spread.median}, {"least", spread.least}, {"most", spread.most}}},
      {"rounds", seen.blocks},
      {"gain", {{"median", seen.median}, {"low", seen.low}, {"high", seen.high}}},
      {"allowed_gain", gain.allowed},
      {"share",
       {{"median", gain.share(seen.median)},
        {"low", gain.share(seen.low)},
        {"high", gain.share(seen.high)}}},
      {"bar", kBar},
      {"verdict", prefix.frozen == 0 ? "none" : gain.verdict()}};
  line["others"] = answer.others ? nlohmann::ordered_json(*answer.others) : nullptr;
  return line;
}

ExitCode print_gains(const Flags& flags) {
  const Options options = read_options(flags);
  const Answer answer = measure(options);
  if (!options.json) {
    std::printf("%s", print_answer(answer, options).c_str());
    return ExitCode::kOk;
  }
  for (const Prefix& prefix : answer.prefixes) {
    std::printf("%s\n", to_json(prefix, answer, options).dump().c_str());
  }
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  const Verb verb{"bench_frozen_prefix",
                  "Times plans for frozen prefixes beside the gain that their profile allows.",
                  "bench_frozen_prefix [--model tiny|wide] [--frozen K,...] "
                  "[--plans any|pipeline|replicas] [--rounds N] [--json]"};
  return run_verb(verb, argc, argv, describe_flags(), print_gains);
}
