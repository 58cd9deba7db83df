#include "exec/train/processes/probe_processes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "exec/config/configured_run.h"
#include "exec/devices/steady_time.h"
#include "exec/profile/link_probe.h"
#include "exec/profile/replica_plan.h"
#include "exec/profile/step_end.h"
#include "exec/train/processes/launched_run.h"
#include "exec/train/processes/member_processes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kSmallRepetitions = 300;
constexpr int kLargeRepetitions = 30;
constexpr int kWarmUpSteps = 4;  // of each plan
constexpr int kSteps = 40;       // of each plan, fewer if they are long
constexpr auto kLongest = std::chrono::seconds(4);
const std::vector<std::int64_t> kSmall = {0, 1 << 10, 1 << 14, 1 << 17};
const std::vector<std::int64_t> kLarge = {1 << 18, 1 << 20, 1 << 22, 1 << 24};

Duration median_of(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

void add_messages(const std::vector<std::int64_t>& sizes, const PairTimes& times,
                  std::vector<MessageTime>& messages) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    messages.push_back({sizes[i], median_of(times.one_way.at(i))});
  }
}

// Takes steps of real training, whose samples every process makes by itself.
class ProbedTraining {
 public:
  ProbedTraining(const RunConfig& config, const Dataset& data, Run& run)
      : rate_(config.optimizer.learning_rate),
        samples_(data.train.count()),
        loader_(data.train, loader_config(config)),
        run_(run) {}

  void measure(const Plan& plan, StepEndMeter& meter) {
    run_.transition_to(plan);
    for (int i = 0; i < kWarmUpSteps; ++i) (void)take_step();
    const SteadyTime start = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps && since(start) < kLongest; ++i) meter.add_step(take_step().spans);
  }

 private:
  // The last batch of an epoch is left out unless it is the only one.
  StepResult take_step() {
    const std::int64_t batch = std::min<std::int64_t>(run_.plan().batch_size, samples_);
    const std::int64_t first = step_ % (samples_ / batch) * batch;
    const SampleRange range{.epoch = 0, .first = first, .count = batch};
    return run_.step(step_++, rate_, loader_.take(range), true, {}, {}, range);
  }

  double rate_;
  std::int64_t samples_;
  SampleLoader loader_;
  Run& run_;
  Step step_ = 0;
};

ProcessProbe probe(const RunConfig& config, const Dataset& data, Run& run) {
  ProcessProbe probe;
  const PairTimes times = run.measure_pair({.sizes = kSmall, .repetitions = kSmallRepetitions});
  add_messages(kSmall, times, probe.messages);
  add_messages(kLarge, run.measure_pair({.sizes = kLarge, .repetitions = kLargeRepetitions}),
               probe.messages);
  ProbedTraining training(config, data, run);
  StepEndMeter ends;
  const Plan replicas = make_replica_plan(run.structure(), 2, config.micro_batch_size);
  training.measure(replicas, ends);
  probe.link.latency = find_latency(times);
  probe.link.bandwidth =
      find_reduction_bandwidth(ends.reduction(), replicas, run.structure(), probe.link.latency);
  const Duration hand_out = ends.hand_out();
  // After a reduction all are awake; after the last backward of a stage the others have slept.
  if (run.structure().layers.size() > 1) {
    training.measure(make_halves_plan(run.structure(), config.micro_batch_size), ends);
  }
  probe.commit_round = hand_out + ends.commit_round();
  return probe;
}

bool are_on_two_hosts(const JoinedWorld& joined) {
  return joined.members.size() > 1 && joined.members[0].facts.host != joined.members[1].facts.host;
}

}  // namespace

ProcessProbe probe_processes(const RunConfig& config, const Dataset& data,
                             const DeviceChoice& processors, JoinedWorld* joined,
                             const std::function<void(const std::string&)>& tell) {
  TrainOptions options;
  options.config = config;
  options.cluster = make_uniform_cluster(2, Bytes{}, {});
  options.processors = processors;
  const auto probe_world = [&](RunWorld world) {
    Run run(make_model(config), config.optimizer, config.seed, std::move(world),
            run_options(config, processors));
    return probe(config, data, run);
  };
  if (joined == nullptr) {
    MemberProcesses members(2);
    return probe_world(lead(members, options, data, Transport::kSockets, /*restarts=*/false));
  }
  const bool over_network = are_on_two_hosts(*joined);
  ProcessProbe found = probe_world(lead(*joined, options, data, Transport::kSockets, tell));
  if (over_network) found.link_class = LinkClass::kNetwork;
  return found;
}

}  // namespace frazil
