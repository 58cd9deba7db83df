// What a transition takes, predicted and measured part by part: models with AdamW state walk at
// random between plans on one to four devices, in process, under masks that grow and shrink, with
// the frozen prefix cached where a plan allows it. The planner is asked before each, as a run asks
// it; the plan that is taken is drawn.
//   plan   asking the planner; predicted: what asking again took at the beginning
//   move   state to its new owners; predicted: what telling all devices took, and from the bytes,
//          at rates measured before the first transition
//   start  program, executors, cache; predicted: what putting the first plan in force again took,
//          and from the bytes that a cache hashes
// Nothing that is predicted knows the transition it is predicted for, or a later one. There is
// nothing to drain between two steps; threads and communicators stay. Beside the parts: how much
// longer the first step after a transition took than the second. The memory that a transition
// copies into is reserved before it, as a run reserves it in the background (exec/preparation.h).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>

#include "analysis/table.h"
#include "exec/cache/prefix_cache.h"
#include "exec/cache_control.h"
#include "exec/foreign_load.h"
#include "exec/memory_probe.h"
#include "exec/numerics.h"
#include "exec/process_memory.h"
#include "exec/run.h"
#include "exec/verb_inputs.h"
#include "exec/vit.h"
#include "planner/activity.h"
#include "planner/command_line.h"
#include "planner/search.h"
#include "tests/bench/bench_run.h"
#include "tests/bench/spread.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kDevices = 4;
constexpr int kMicroBatches = 4;

struct Options {
  std::vector<BenchModel> models;
  int transitions = 20;
  std::uint64_t seed = 1;
  bool lists = false;
};

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  const auto text = [] { return po::value<std::string>(); };
  flags.add_options()                                                                 //
      ("model", text(), "tiny, wide or base (86 million parameters); default: each")  //
      ("transitions", text(), "of each model, default 20")                            //
      ("seed", text(), "of the walk, weights and data, default 1")                    //
      ("list", po::bool_switch(), "every transition");
  return flags;
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
  options.seed = static_cast<std::uint64_t>(integer_or(flags, "seed", 1, 0, 1'000'000));
  options.lists = is_set(flags, "list");
  return options;
}

struct Parts {
  Duration plan{0};
  Duration move{0};
  Duration start{0};
  Duration total() const { return plan + move + start; }
};

struct Transition {
  std::string name;
  Parts predicted;
  Parts measured;
  MoveReport move;
  Duration program{0};
  Duration executors{0};
  Duration cache{0};
  Duration warm_up{0};  // first step less the second
};

double ratio(Duration a, Duration b) {
  return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

Duration since(SteadyTime start) {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
}

Duration median(std::array<Duration, 5> times) {
  std::sort(times.begin(), times.end());
  return times[2];
}

// A model that walks.
class Walk {
 public:
  Walk(const BenchModel& model, std::uint64_t seed)
      : run_(make_vit(model.config), optimizer_, seed, kDevices),
        profile_(with_even_times(run_.structure(), kMicroBatch)),
        cluster_(make_uniform_cluster(kDevices, Bytes{kLargestQuantity}, {})),
        search_(profile_, cluster_),
        random_(seed) {
    shape_.batch_size = kMicroBatch * kMicroBatches;
    shape_.micro_batches = kMicroBatches;
    batches_ = make_batches(model.config, shape_, 1, seed);
    for (int i = 0; i < shape_.batch_size; ++i) ids_.push_back(i);
    cache_.emplace(run_.model(), run_.outputs(narrow(batches_[0][0], 0, 1)), shape_.batch_size,
                   files_, PrefixCacheOptions{.limits = {Bytes{1 << 28}, {}, {}}});
    run_.attach(*cache_);
  }

  // The first plan, and what is known before the first transition.
  void begin() {
    const Plan plan = draw();
    (void)ask(plan.mask);
    run_.switch_to(plan);
    train();
    std::array<Duration, 5> plan_times;
    std::array<Duration, 5> move_times;
    std::array<Duration, 5> start_times;
    for (std::size_t i = 0; i < plan_times.size(); ++i) {
      fill_processor_caches();
      plan_times[i] = ask(plan.mask);
      const SwitchReport again = run_.switch_to(plan);
      move_times[i] = again.move_time;
      start_times[i] = again.program_time + again.executor_time;
    }
    overhead_.plan = median(plan_times);
    overhead_.move = median(move_times);
    overhead_.start = median(start_times);
    overhead_.memory = probe_memory(run_.model(), kDevices);
  }

  Transition take() {
    Transition taken;
    const Plan before = run_.plan();
    Plan next = draw();
    while (next.pipelines == before.pipelines) next = draw();
    taken.name = name_of(before) + " -> " + name_of(next);
    const TransitionCost cost = predict_transition(before, next, profile_, cluster_,
                                                   find_activity(profile_, before.mask), overhead_);
    taken.predicted = {overhead_.plan, cost.move, cost.total - cost.move - overhead_.plan};
    run_.state_memory().reserve(run_.copied_blocks(next));
    taken.measured.plan = ask(next.mask);
    const SwitchReport report = run_.switch_to(next);
    taken.measured.move = report.move_time;
    taken.measured.start = report.start_time();
    taken.move = report.move;
    taken.program = report.program_time;
    taken.executors = report.executor_time;
    taken.cache = report.cache_time;
    const Duration first = train();
    taken.warm_up = first - train();
    return taken;
  }

 private:
  static constexpr int kMicroBatch = 2;

  static std::string name_of(const Plan& plan) {
    std::string name;
    for (const Pipeline& pipeline : plan.pipelines) {
      name += (name.empty() ? "" : "+") + std::to_string(pipeline.stages.size());
    }
    return name + " frozen " + std::to_string(plan.mask.frozen_count());
  }

  // As many devices as it takes, cuts that are even; a mask that freezes some blocks from the
  // front.
  Plan draw() {
    struct Shape {
      int stages;
      int replicas;
    };
    static constexpr Shape kShapes[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {1, 2}, {2, 2}, {1, 4}};
    const Shape& drawn = kShapes[random_() % std::size(kShapes)];
    BenchPlan shape = shape_;
    shape.devices = drawn.stages;
    shape.replicas = drawn.replicas;
    Plan plan = make_bench_plan(run_.structure(), shape);
    const auto blocks = static_cast<int>(run_.structure().blocks.size());
    const int frozen = static_cast<int>(random_() % static_cast<unsigned>(blocks - 1));
    if (frozen > 0) plan.mask = FreezeMask::frozen_prefix(blocks, BlockId{frozen});
    return with_cached_prefix(plan, profile_).value_or(plan);
  }

  Duration ask(const FreezeMask& mask) {
    const SteadyTime start = std::chrono::steady_clock::now();
    SearchOptions search;
    search.batch_size = shape_.batch_size;
    search.micro_batch_sizes = {kMicroBatch};
    search.mask = mask;
    search.cache = true;
    (void)search_.search(search);
    return since(start);
  }

  Duration train() {
    const SteadyTime start = std::chrono::steady_clock::now();
    run_.step(step_++, optimizer_.learning_rate, batches_[0], false, {}, ids_);
    return since(start);
  }

  OptimizerConfig optimizer_;  // AdamW
  Run run_;
  ModelProfile profile_;
  Cluster cluster_;
  PlanSearch search_;
  std::mt19937_64 random_;
  BenchPlan shape_;
  std::vector<std::vector<Samples>> batches_;
  std::vector<std::int64_t> ids_;
  FileSystem files_ = real_file_system();
  std::optional<PrefixCache> cache_;
  TransitionOverhead overhead_;
  Step step_ = 0;
};

std::string ms(Duration time) {
  return fixed(std::chrono::duration<double, std::milli>(time).count(), 2);
}

std::string both(Duration predicted, Duration measured) {
  return ms(predicted) + " / " + ms(measured);
}

void list(const std::vector<Transition>& taken) {
  Table table{{"stages of pipelines", "copied MB", "plan", "move", "start", "program", "executors",
               "cache", "total", "predicted / measured", "warm-up"},
              {}};
  for (const Transition& each : taken) {
    table.rows.push_back(
        {each.name, fixed(static_cast<double>(each.move.copied.count) * 1e-6, 1),
         both(each.predicted.plan, each.measured.plan),
         both(each.predicted.move, each.measured.move),
         both(each.predicted.start, each.measured.start), ms(each.program), ms(each.executors),
         ms(each.cache), both(each.predicted.total(), each.measured.total()),
         fixed(ratio(each.predicted.total(), each.measured.total()), 2), ms(each.warm_up)});
  }
  std::printf("%s", to_text(table).c_str());
}

void add_sums(const std::string& name, const std::vector<Transition>& taken, Table& table) {
  Parts predicted;
  Parts measured;
  double error = 0;
  double weighted = 0;
  for (const Transition& each : taken) {
    predicted.plan += each.predicted.plan;
    predicted.move += each.predicted.move;
    predicted.start += each.predicted.start;
    measured.plan += each.measured.plan;
    measured.move += each.measured.move;
    measured.start += each.measured.start;
    const double own = std::abs(ratio(each.predicted.total(), each.measured.total()) - 1);
    error += own;
    weighted += own * ratio(each.measured.total(), Duration{1});
  }
  const auto count = static_cast<double>(taken.size());
  table.rows.push_back({name, std::to_string(taken.size()), both(predicted.plan, measured.plan),
                        both(predicted.move, measured.move), both(predicted.start, measured.start),
                        both(predicted.total(), measured.total()), fixed(100 * error / count, 1),
                        fixed(100 * weighted / ratio(measured.total(), Duration{1}), 1)});
}

ExitCode print_transitions(const Flags& flags) {
  const Options options = read_options(flags);
  Table table{{"model", "transitions", "plan ms", "move ms", "start ms", "total ms", "mean error %",
               "weighted by time %"},
              {}};
  const ForeignLoad load;
  for (const BenchModel& model : options.models) {
    Walk walk(model, options.seed);
    walk.begin();
    std::vector<Transition> taken;
    for (int i = 0; i < options.transitions; ++i) taken.push_back(walk.take());
    if (options.lists) list(taken);
    (void)std::fflush(stdout);
    add_sums(model.name, taken, table);
  }
  std::printf(
      "predicted / measured, sums over the transitions; the error is of each one's total\n");
  std::printf("%s", to_text(table).c_str());
  const std::optional<double> others = load.cores();
  std::printf("other programs kept %s cores busy\n",
              others ? fixed(*others, 2).c_str() : "an unknown number of");
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_numerics();
  keep_freed_memory();
  const Verb verb{"bench_transition",
                  "Times transitions part by part beside what is predicted of them.",
                  "bench_transition [--model tiny|wide|base] [--transitions N] [--list]"};
  return run_verb(verb, argc, argv, describe_flags(), print_transitions);
}
