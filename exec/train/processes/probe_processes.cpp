#include "exec/train/processes/probe_processes.h"

#include <algorithm>
#include <utility>

#include "analysis/ratio_interval.h"
#include "exec/config/configured_run.h"
#include "exec/profile/link_probe.h"
#include "exec/train/processes/launched_run.h"
#include "exec/train/processes/member_processes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kSmallRepetitions = 300;
constexpr int kLargeRepetitions = 30;
constexpr int kReductions = 100;
constexpr int kCommits = 300;
const std::vector<std::int64_t> kSmall = {0, 1 << 10, 1 << 14, 1 << 17};
const std::vector<std::int64_t> kLarge = {1 << 18, 1 << 20, 1 << 22, 1 << 24};

Duration median_of(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Duration trimmed_mean_of(const std::vector<Duration>& times) {
  std::vector<double> counts;
  for (const Duration time : times) counts.push_back(static_cast<double>(time.count()));
  return Duration{static_cast<Duration::rep>(trimmed_mean(counts))};
}

void add_messages(const std::vector<std::int64_t>& sizes, const PairTimes& times,
                  std::vector<MessageTime>& messages) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    messages.push_back({sizes[i], median_of(times.one_way.at(i))});
  }
}

ProcessProbe probe(Run& run) {
  ProcessProbe probe;
  PairTimes times = run.measure_pair({.sizes = kSmall, .repetitions = kSmallRepetitions});
  add_messages(kSmall, times, probe.messages);
  add_messages(kLarge, run.measure_pair({.sizes = kLarge, .repetitions = kLargeRepetitions}),
               probe.messages);
  times.reductions = run.measure_pair({.sizes = {}, .reductions = kReductions}).reductions;
  probe.link = find_link(times);
  probe.commit_round = trimmed_mean_of(run.measure_commits(kCommits));
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
    return probe(run);
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
