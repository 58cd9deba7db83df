// clang-format off
// Measures what freezing costs in accuracy on a task that is not saturated: the random hierarchy of
// exec/runs/random_hierarchy.json, trained from scratch by the trainer under one policy after
// another. A seed draws grammar, samples, start values, order and validation part, equal for all
// policies, so that differences are paired.
//   accuracy    on the test samples after the last step; mean and standard deviation over the seeds
//   to alpha    mean difference to `alpha` in points, with its 95 % interval by Student's t
//   frozen      share of the run's work that was saved, with F = I = W = 1 for each layer
//   wall        wall time of a run, its evaluations included
// Results of bench_freezing_accuracy with seeds 1 to 8. Any machine that keeps the rules of
// exec/devices/numerics.h has these accuracies; the learning rate was not tuned.
//   policy      accuracy  to alpha, points        frozen
//   alpha 1/3   25.60 %                           47.4 %
//   plasticity  43.17 %   17.57 (15.57 to 19.57)  13.0 %
//   none        44.72 %   19.12 (16.32 to 21.92)
// A validation guard around alpha never thaws here (25.60 %), for the accuracy rises all the time,
// only more slowly. A guard that waits lets nothing freeze (44.72 %).
// clang-format on

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "analysis/tables/table.h"
#include "exec/config/configured_run.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/train/trainer.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/freezing/freeze_json.h"
#include "planner/plan/activity.h"
#include "planner/verbs/command_line.h"
#include "profiles/json.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/spread.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

struct NamedPolicy {
  std::string name;
  std::string freeze;
};

// Lists the policies. All decide once an epoch, as PipeTransformer does; everything else is the
// default.
std::vector<NamedPolicy> list_policies() {
  const std::string alpha =
      R"("policy": {"kind": "alpha", "alpha": 0.3333333333333333, "start_epoch": 2})";
  const std::string plasticity = R"("policy": {"kind": "plasticity", "interval_epochs": 1})";
  const std::string guard = R"("decorators": {"validation_guard": {}})";
  const std::string waiting =
      R"("decorators": {"validation_guard": {"wait_while_improving": true}})";
  return {{"alpha", "{" + alpha + "}"},
          {"none", R"({"policy": {"kind": "none"}})"},
          {"plasticity", "{" + plasticity + "}"},
          {"alpha+guard", "{" + alpha + ", " + guard + "}"},
          {"alpha+waiting-guard", "{" + alpha + ", " + waiting + "}"},
          {"plasticity+guard", "{" + plasticity + ", " + guard + "}"},
          {"linear", R"({"policy": {"kind": "linear"}})"},
          {"autofreeze", R"({"policy": {"kind": "autofreeze", "interval_epochs": 1}})"},
          {"pt-paper", R"({"policy": {"kind": "pt-paper", "interval_epochs": 1}})"}};
}

po::options_description describe_flags() {
  return describe_bench_flags({{"run", "configuration, default exec/runs/random_hierarchy.json"},
                               {"seeds", "seeds of each policy, default 8"},
                               {"first-seed", "the first of them, default 1"},
                               {"devices", "of the run, default 1"},
                               {"policies",
                                "comma list of alpha, none, plasticity, alpha+guard, "
                                "alpha+waiting-guard, plasticity+guard, "
                                "linear, autofreeze, pt-paper; default the first five"}});
}

struct Course {
  NamedPolicy policy;
  std::vector<double> accuracies = {};  // %, by seed
  std::vector<double> frozen = {};      // %
  std::vector<double> seconds = {};
};

// Makes a profile with even times: on one device one stage is the only plan, whatever layers take.
ModelProfile make_profile(const RunConfig& config) {
  return with_even_times(structure_of(config), config.micro_batch_size);
}

std::int64_t count_work(const ModelProfile& profile, const FreezeMask& mask) {
  const Activity activity = find_activity(profile, mask);
  std::int64_t work = 0;
  for (const LayerActivity& layer : activity.layers) {
    work += 1 + int{layer.input_gradient} + int{layer.weight_gradient};
  }
  return work;
}

double find_frozen_percent(const ModelProfile& profile, const TrainResult& result) {
  const std::int64_t steps = result.trace.steps;
  std::int64_t done = 0;
  for (std::size_t p = 0; p < result.phases.size(); ++p) {
    const Step end = p + 1 < result.phases.size() ? result.phases[p + 1].first_step : steps;
    done += (end - result.phases[p].first_step) * count_work(profile, result.phases[p].plan.mask);
  }
  const auto blocks = static_cast<int>(profile.blocks.size());
  const std::int64_t all = steps * count_work(profile, FreezeMask::all_active(blocks));
  return 100 * (1 - static_cast<double>(done) / static_cast<double>(all));
}

void train_once(const RunConfig& config, int devices, Course& course) {
  TrainOptions options;
  options.config = config;
  options.config.freeze = parse_freeze(parse_json(course.policy.freeze, course.policy.name),
                                       config.model, std::filesystem::path());
  options.profile = make_profile(config);
  options.cluster = make_uniform_cluster(devices, Bytes{kLargestQuantity}, {});
  const Dataset data = load_data(config);
  const auto start = std::chrono::steady_clock::now();
  const TrainResult result = train(options, data);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  course.accuracies.push_back(100 * result.accuracy.value());
  course.frozen.push_back(find_frozen_percent(options.profile, result));
  course.seconds.push_back(time.count());
  std::fprintf(stderr, "seed %llu, %s: %.2f %%, masks", (unsigned long long)config.seed,
               course.policy.name.c_str(), course.accuracies.back());
  for (const TrainPhase& phase : result.phases) {
    std::fprintf(stderr, " %lld:%s", (long long)phase.first_step, phase.plan.mask.text().c_str());
  }
  std::fprintf(stderr, "\n");
}

std::vector<Course> choose_courses(const std::string& names) {
  const std::vector<NamedPolicy> all = list_policies();
  std::vector<Course> courses;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const NamedPolicy& policy) { return policy.name == name; });
    if (found == all.end()) refuse_flags("--policies " + names, "names that --help lists");
    courses.push_back({*found});
  }
  return courses;
}

std::string difference_text(const Course& course, const Course& alpha) {
  if (course.policy.name == alpha.policy.name || course.accuracies.size() < 2) return "-";
  const MeanInterval difference = find_paired_difference(course.accuracies, alpha.accuracies);
  return to_range_text(difference.mean, difference.low, difference.high, 2);
}

void print(const std::vector<Course>& courses, int first_seed) {
  const auto alpha = std::find_if(courses.begin(), courses.end(), [](const Course& course) {
    return course.policy.name == "alpha";
  });
  Table table{{"policy", "accuracy %", "deviation", "to alpha, points", "frozen %", "wall s"}, {}};
  Table by_seed{{"seed"}, {}};
  for (const Course& course : courses) {
    const MeanInterval accuracy = find_mean(course.accuracies);
    table.rows.push_back({course.policy.name, fixed(accuracy.mean, 2), fixed(accuracy.deviation, 2),
                          alpha == courses.end() ? "-" : difference_text(course, *alpha),
                          fixed(find_mean(course.frozen).mean, 1),
                          fixed(find_mean(course.seconds).mean, 1)});
    by_seed.header.push_back(course.policy.name);
  }
  for (std::size_t s = 0; s < courses.front().accuracies.size(); ++s) {
    by_seed.rows.push_back({std::to_string(first_seed + static_cast<int>(s))});
    for (const Course& course : courses) {
      by_seed.rows.back().push_back(fixed(course.accuracies[s], 2));
    }
  }
  std::printf("%s\naccuracy %% by seed\n%s", to_text(table).c_str(), to_text(by_seed).c_str());
}

ExitCode run(const Flags& flags) {
  RunConfig config =
      read_run_config(optional_text(flags, "run").value_or("exec/runs/random_hierarchy.json"));
  const int seeds = integer_or(flags, "seeds", 8, 1, 1000);
  const int first = integer_or(flags, "first-seed", 1, 0, kMostCounted);
  const int devices = integer_or(flags, "devices", 1, 1, 64);
  std::vector<Course> courses =
      choose_courses(optional_text(flags, "policies")
                         .value_or("alpha,none,plasticity,alpha+guard,alpha+waiting-guard"));
  for (int seed = first; seed < first + seeds; ++seed) {
    config.seed = config.data.seed = static_cast<std::uint64_t>(seed);
    for (Course& course : courses) train_once(config, devices, course);
  }
  print(courses, first);
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  const Verb verb{"bench_freezing_accuracy",
                  "Trains a task that is not saturated under freeze policies, paired by seed.",
                  "bench_freezing_accuracy [--seeds N] [--first-seed N] [--policies LIST]"};
  return run_verb(verb, argc, argv, describe_flags(), run);
}
