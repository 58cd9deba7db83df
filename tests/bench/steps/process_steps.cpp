// clang-format off
// Measures what a run over processes costs beside one whose two devices are threads of one process.
// Both train the same model under the same plan, and take turns, `--steps` steps each, in an order
// that changes from round to round:
//   step        ratio of the mean steps of one round, over pairs of Unix sockets and over TCP of the
//               loopback; median over the rounds and its 95 % bootstrap interval
//   transition  from two stages to two replicas and back: time of one, and bytes of layers that go
//               from one process to the other over that time
// The runs end with the same bits, or the program says so and exits with 1. The other process is a
// fork of this one, made before torch has any thread.
// clang-format on

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/ratio_interval.h"
#include "exec/config/configured_data.h"
#include "exec/config/configured_run.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/train/processes/member.h"
#include "exec/train/processes/member_processes.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kDevices = 2;

struct Options {
  BenchModel model;
  int rounds = 12;
  int steps = 8;
  int transitions = 12;
  std::uint64_t seed = 1;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "small (2 blocks of width 32; default), tiny, wide or base"},
       {"rounds", "of all worlds, default 12"},
       {"steps", "timed of each world and round, default 8"},
       {"transitions", "there and back, default 12"},
       {"seed", "of weights, data and intervals, default 1"}});
}

Options read_options(const Flags& flags) {
  Options options;
  const std::string name = optional_text(flags, "model").value_or("small");
  if (name == "small") {
    options.model = {.name = name,
                     .config = {.image = 8, .patch = 2, .dim = 32, .blocks = 2, .heads = 2},
                     .batch_size = 64};
  } else {
    options.model = find_bench_model(name);
  }
  options.rounds = integer_or(flags, "rounds", options.rounds, 1, 10'000);
  options.steps = integer_or(flags, "steps", options.steps, 1, 10'000);
  options.transitions = integer_or(flags, "transitions", options.transitions, 1, 10'000);
  options.seed = read_seed(flags);
  return options;
}

// What the members make their model and samples from.
RunConfig make_config(const Options& options) {
  RunConfig config;
  config.model = options.model.config;
  config.data.kind = DataConfig::Kind::kSynthetic;
  config.data.train_samples = options.model.batch_size * options.steps;
  config.data.test_samples = 8;
  config.optimizer = momentum_sgd();
  config.batch_size = options.model.batch_size;
  config.micro_batch_size = options.model.batch_size / 8;
  config.seed = options.seed;
  return config;
}

// The other process of a run, and this one's ends of what joins them.
class Member {
 public:
  Member(std::vector<std::vector<PeerSockets>> sockets, const std::vector<Member>& others) {
    SocketPair control = make_socket_pair();
    process_ = ::fork();
    if (process_ == 0) {
      control[0].close();
      sockets[0].clear();
      for (const Member& other : others) other.forget();
      ::_exit(
          static_cast<int>(serve_run(1, std::move(control[1]), std::move(sockets[1]), {}).code));
    }
    control_ = std::move(control[0]);
    peers_ = std::move(sockets[0]);
  }
  Member(Member&&) = default;
  Member& operator=(Member&&) = delete;

  RunWorld lead(const TrainOptions& options, const Dataset& data) {
    std::map<int, Descriptor> members;
    members.emplace(1, std::move(control_));
    return lead_over(std::move(members), std::move(peers_), options, data, Transport::kSockets, {});
  }
  void wait() const { (void)::waitpid(process_, nullptr, 0); }

 private:
  // A fork keeps no end of another's sockets open.
  void forget() const {
    ::close(control_.number());
    for (const PeerSockets& peer : peers_) {
      if (!peer.steps.is_open()) continue;
      ::close(peer.steps.number());
      ::close(peer.bulk.number());
    }
  }

  pid_t process_ = 0;
  Descriptor control_;
  std::vector<PeerSockets> peers_;
};

std::vector<std::vector<PeerSockets>> make_tcp_sockets() {
  const auto make_pair = [] {
    const Descriptor listener = listen_at({});
    Descriptor client = connect_to(address_of(listener), {}, std::chrono::seconds(10));
    return SocketPair{std::move(client), accept_from(listener, std::chrono::seconds(10))};
  };
  std::vector<std::vector<PeerSockets>> sockets(2);
  for (auto& row : sockets) row.resize(2);
  SocketPair steps = make_pair();
  SocketPair bulk = make_pair();
  sockets[0][1] = {std::move(steps[0]), std::move(bulk[0])};
  sockets[1][0] = {std::move(steps[1]), std::move(bulk[1])};
  return sockets;
}

// A run, in one process or two, and its steps so far.
struct Trial {
  std::string name;
  std::unique_ptr<Run> run;
  Step step = 0;
  std::vector<double> seconds = {};      // mean step of each round
  std::vector<double> transitions = {};  // seconds of each
  std::vector<double> moved = {};        // bytes of each
};

double seconds_since(SteadyTime begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Takes the steps of one round.
void take_steps(Trial& trial, SampleLoader& loader, const Options& options) {
  std::vector<double> seconds;
  for (int i = 0; i < options.steps; ++i, ++trial.step) {
    const SampleRange range{.epoch = 0,
                            .first = std::int64_t{i} * options.model.batch_size,
                            .count = options.model.batch_size};
    const std::vector<Samples> batches = loader.take(range);
    const SteadyTime begin = std::chrono::steady_clock::now();
    trial.run->step(trial.step, 0.01, batches, false, {}, {}, range);
    seconds.push_back(seconds_since(begin));
  }
  trial.seconds.push_back(std::accumulate(seconds.begin(), seconds.end(), 0.0) /
                          static_cast<double>(seconds.size()));
}

void change_plan(Trial& trial, const Plan& plan) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  const TransitionReport report = trial.run->transition_to(plan);
  trial.transitions.push_back(seconds_since(begin));
  trial.moved.push_back(static_cast<double>(report.move.moved.count));
}

void print_steps(const std::vector<Trial>& trials, const std::string& plan,
                 const Options& options) {
  std::printf("%-10s %-14s", options.model.name.c_str(), plan.c_str());
  const Spread own = find_spread(trials[0].seconds);
  std::printf(" %9.3f ms", own.median * 1e3);
  for (std::size_t i = 1; i < trials.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < trials[0].seconds.size(); ++r) {
      ratios.push_back(trials[i].seconds[r] / trials[0].seconds[r]);
    }
    const RatioInterval ratio = bootstrap_ratio(ratios, options.seed);
    std::printf("   %s %s", trials[i].name.c_str(),
                to_range_text(ratio.median, ratio.low, ratio.high, 3).c_str());
  }
  std::printf("\n");
}

// Runs all worlds under a plan, round by round.
void compare_steps(std::vector<Trial>& trials, const Plan& plan, const std::string& name,
                   SampleLoader& loader, const Options& options) {
  for (Trial& trial : trials) {
    trial.run->transition_to(plan);
    take_steps(trial, loader, options);  // to warm up
    trial.seconds.clear();
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < trials.size(); ++i) {
      take_steps(trials[(i + static_cast<std::size_t>(round)) % trials.size()], loader, options);
    }
  }
  print_steps(trials, name, options);
}

void compare_transitions(std::vector<Trial>& trials, const Plan& stages, const Plan& replicas,
                         const Options& options) {
  for (int i = 0; i < options.transitions; ++i) {
    for (Trial& trial : trials) {
      trial.run->transition_to(stages);
      change_plan(trial, replicas);
    }
  }
  std::printf("%-24s %24s %12s %10s\n", "two stages to replicas", "ms", "MB", "GB/s");
  for (const Trial& trial : trials) {
    const Spread time = find_spread(trial.transitions);
    const double bytes = find_spread(trial.moved).median;
    std::printf("%-24s %24s %12.1f %10.2f\n", trial.name.c_str(),
                to_range_text(time.median * 1e3, time.least * 1e3, time.most * 1e3, 2).c_str(),
                bytes / 1e6, bytes / time.median / 1e9);
  }
}

ExitCode compare(const Options& options) {
  std::vector<Member> members;
  members.reserve(2);
  members.emplace_back(make_socket_pairs(2), members);
  members.emplace_back(make_tcp_sockets(), members);
  TrainOptions train;
  train.config = make_config(options);
  train.cluster = make_uniform_cluster(kDevices, Bytes{kLargestQuantity}, {});
  const Dataset data = load_data(train.config);
  SampleLoader loader(data.train, loader_config(train.config));
  const auto make = [&](std::string name, RunWorld world) {
    return Trial{
        .name = std::move(name),
        .run = std::make_unique<Run>(make_model(train.config), train.config.optimizer, options.seed,
                                     std::move(world), run_options(train.config))};
  };
  std::vector<Trial> trials;
  trials.push_back(make("threads", one_process(kDevices)));
  trials.push_back(make("unix", members[0].lead(train, data)));
  trials.push_back(make("tcp", members[1].lead(train, data)));

  const ModelProfile& structure = trials[0].run->structure();
  const BenchPlan shape{.devices = 2, .batch_size = options.model.batch_size};
  const BenchPlan copies{.replicas = 2, .batch_size = options.model.batch_size};
  const Plan stages = make_bench_plan(structure, shape);
  const Plan replicas = make_bench_plan(structure, copies);
  std::printf("%-10s %-14s %12s   over it, with two processes\n", "model", "plan", "step, threads");
  ForeignLoad foreign;
  compare_steps(trials, stages, "two stages", loader, options);
  compare_steps(trials, replicas, "two replicas", loader, options);
  compare_transitions(trials, stages, replicas, options);
  std::printf("%s\n", to_load_text(foreign.cores()).c_str());
  const std::uint64_t hash = trials[0].run->weight_hash();
  const bool same = std::all_of(trials.begin(), trials.end(), [&](const Trial& trial) {
    return trial.run->weight_hash() == hash;
  });
  if (!same) std::fprintf(stderr, "bench_process_steps: the worlds do not have the same weights\n");
  trials.clear();
  for (const Member& member : members) member.wait();
  return same ? ExitCode::kOk : ExitCode::kFailure;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  const Verb verb{"bench_process_steps", "Times training steps over two processes beside one.",
                  "bench_process_steps [--model small|tiny|wide|base] [--rounds N] [--steps N]"};
  return run_verb(verb, argc, argv, describe_flags(),
                  [](const Flags& flags) { return compare(read_options(flags)); });
}
