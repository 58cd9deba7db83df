// clang-format off
// Measures the time of transitions, predicted and measured part by part: models with AdamW state
// walk at random between plans on one to four devices, in process, under masks that grow and
// shrink, with the frozen prefix cached if a plan allows it. The planner is asked before each
// transition, as a run asks it; the plan that is taken is drawn.
//   plan   asking the planner; predicted: what asking again took at the beginning
//   move   state to its new owners; predicted: what telling all devices took at the beginning, and
//          the time of the bytes at rates measured before the first transition
//   start  program, executors, cache; predicted: what putting the first plan in force again took,
//          and the time of the bytes that a cache hashes
// A prediction uses no measurement of its own transition or of a later one. Nothing needs draining
// between two steps; threads and communicators stay. A further column tells how much longer the
// first step after a transition took than the second.
// The memory that a transition copies into is reserved before it, as a run reserves it in the
// background (exec/train/plans/preparation.h) for the plan that it expects. `--surprises` transitions in
// a hundred, drawn by the seed, go to another plan, for which nothing is reserved.
//   error    |predicted / measured - 1| of a transition's total; the mean over a model's
//            transitions, with the 95 % interval of Student's t, and the median
//   verdict  on the mean error: met or missed when the whole interval says so
// clang-format on

#include <cmath>
#include <cstdio>

#include "analysis/tables/table.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"
#include "tests/bench/transitions/transition_walk.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr double kBar = 15;  // percent, of the mean error

struct Options {
  std::vector<BenchModel> models;
  int transitions = 40;
  int surprises = 25;  // percent
  std::uint64_t seed = 1;
  bool lists = false;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "tiny, wide or base (86 million parameters); default: each"},
       {"transitions", "of each model, default 40"},
       {"surprises", "percent that go to another plan than expected, default 25"},
       {"seed", "of the walk, weights and data, default 1"}},
      {{"list", "every transition"}});
}

Options read_options(const Flags& flags) {
  Options options;
  if (const auto name = optional_text(flags, "model")) {
    options.models = {find_bench_model(*name)};
  } else {
    for (const char* each : {"tiny", "wide", "base"}) {
      options.models.push_back(find_bench_model(each));
    }
  }
  options.transitions = integer_or(flags, "transitions", options.transitions, 1, 10'000);
  options.surprises = integer_or(flags, "surprises", options.surprises, 0, 100);
  options.seed = read_seed(flags);
  options.lists = is_set(flags, "list");
  return options;
}

Duration total(const TransitionTimes& times) { return times.plan + times.move + times.start; }

void add(const TransitionTimes& more, TransitionTimes& sum) {
  sum.plan += more.plan;
  sum.move += more.move;
  sum.start += more.start;
}

double ratio(Duration a, Duration b) {
  return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

std::string ms(Duration time) {
  return fixed(std::chrono::duration<double, std::milli>(time).count(), 2);
}

std::string both(Duration predicted, Duration measured) {
  return ms(predicted) + " / " + ms(measured);
}

void list(const std::vector<WalkedTransition>& taken) {
  Table table{{"stages of pipelines", "expected", "copied MB", "plan", "move", "start", "program",
               "executors", "cache", "total", "predicted / measured", "warm-up"},
              {}};
  for (const WalkedTransition& each : taken) {
    table.rows.push_back(
        {each.name, each.is_surprise ? "no" : "yes",
         fixed(static_cast<double>(each.move.copied.count) * 1e-6, 1),
         both(each.predicted.plan, each.measured.plan),
         both(each.predicted.move, each.measured.move),
         both(each.predicted.start, each.measured.start), ms(each.program), ms(each.executors),
         ms(each.cache), both(total(each.predicted), total(each.measured)),
         fixed(ratio(total(each.predicted), total(each.measured)), 2), ms(each.warm_up)});
  }
  std::printf("%s", to_text(table).c_str());
}

// Returns the errors of the predicted totals, in percent.
std::vector<double> find_errors(const std::vector<WalkedTransition>& taken) {
  std::vector<double> errors;
  for (const WalkedTransition& each : taken) {
    errors.push_back(100 * std::abs(ratio(total(each.predicted), total(each.measured)) - 1));
  }
  return errors;
}

double weigh_by_time(const std::vector<double>& errors,
                     const std::vector<WalkedTransition>& taken) {
  double weighted = 0;
  double all = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const auto time = static_cast<double>(total(taken[i].measured).count());
    weighted += errors[i] * time;
    all += time;
  }
  return weighted / all;
}

void add_sums(const std::string& name, const std::vector<WalkedTransition>& taken, Table& table) {
  TransitionTimes predicted;
  TransitionTimes measured;
  int surprises = 0;
  for (const WalkedTransition& each : taken) {
    add(each.predicted, predicted);
    add(each.measured, measured);
    surprises += each.is_surprise ? 1 : 0;
  }
  const std::vector<double> errors = find_errors(taken);
  const MeanInterval mean = find_mean(errors);
  table.rows.push_back(
      {name, std::to_string(taken.size()), std::to_string(surprises),
       both(predicted.plan, measured.plan), both(predicted.move, measured.move),
       both(predicted.start, measured.start), both(total(predicted), total(measured)),
       to_range_text(mean.mean, mean.low, mean.high, 1), verdict_at_most(mean.low, mean.high, kBar),
       fixed(find_spread(errors).median, 1), fixed(weigh_by_time(errors, taken), 1)});
}

ExitCode print_transitions(const Flags& flags) {
  const Options options = read_options(flags);
  Table table{{"model", "transitions", "surprises", "plan ms", "move ms", "start ms", "total ms",
               "mean error % (95 %)", "bar " + fixed(kBar, 0) + " %", "median error %",
               "weighted by time %"},
              {}};
  const ForeignLoad load;
  for (const BenchModel& model : options.models) {
    TransitionWalk walk(model, options.seed, options.surprises);
    walk.begin();
    std::vector<WalkedTransition> taken;
    for (int i = 0; i < options.transitions; ++i) taken.push_back(walk.take());
    if (options.lists) list(taken);
    (void)std::fflush(stdout);
    add_sums(model.name, taken, table);
  }
  std::printf(
      "predicted / measured, sums over the transitions; the error is of each one's total\n");
  std::printf("%s", to_text(table).c_str());
  std::printf("%s\n", to_load_text(load.cores()).c_str());
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{
      "bench_transition", "Times transitions part by part beside what is predicted of them.",
      "bench_transition [--model tiny|wide|base] [--transitions N] [--surprises PERCENT] "
      "[--list]"};
  return run_verb(verb, argc, argv, describe_flags(), print_transitions);
}
