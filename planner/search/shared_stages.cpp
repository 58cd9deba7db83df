#include "planner/search/shared_stages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/partition/replica_levels.h"
#include "planner/plan/schedule_facts.h"
#include "planner/search/shared_cuts.h"
#include "planner/search/shared_plan.h"

namespace frazil {
namespace {

constexpr int kMostStages = 4;
constexpr std::size_t kClimbs = 2;
// A plan that takes longer than the fastest one by more than this is not worth improving.
constexpr std::int64_t kWorthClimbingPpm = 200'000;
// PipeDream's partition is asked for up to so many layers and devices, where it takes about 1 ms.
constexpr std::size_t kMostPartitionedLayers = 64;
constexpr int kMostPartitionedDevices = 16;

class SharedSearch {
 public:
  SharedSearch(Evaluator& evaluator, const SearchOptions& options, Incumbents& kept,
               Rejections& rejected)
      : evaluator_(evaluator),
        setting_(evaluator.setting()),
        options_(options),
        kept_(kept),
        rejected_(rejected),
        devices_(static_cast<int>(setting_.cluster().devices.size())),
        layers_(static_cast<int>(setting_.profile().layers.size())),
        most_copies_(options.max_replicas > 0 ? std::min(options.max_replicas, devices_)
                                              : devices_),
        most_stages_(std::min({options.max_stages > 0 ? options.max_stages : kMostStages,
                               kMostStages, layers_, devices_})) {
    for (const ScheduleKind kind : options.schedules) {
      const ScheduleFacts& facts = facts_of(kind);
      if (facts.takes_shared_stages && facts.versions == WeightVersions::kSync) {
        schedules_.push_back(kind);
      }
    }
    // Plans are proposed under the first of them, and 1f1b is a good one to begin with.
    const auto usual =
        std::find(schedules_.begin(), schedules_.end(), ScheduleKind::kOneForwardOneBackward);
    if (usual != schedules_.end()) std::iter_swap(schedules_.begin(), usual);
  }

  bool may_look() const {
    return options_.shared_effort > 0 && devices_ >= 3 && devices_ <= kMostSharingDevices &&
           most_copies_ >= 2 && most_stages_ >= 2 && !schedules_.empty();
  }

  SharedStages run() {
    fastest_ = kept_.least_makespan();
    try_partitions();
    propose();
    std::sort(proposed_.begin(), proposed_.end());
    for (const auto& [work, plan] : proposed_) {
      if (work >= fastest_ || is_spent()) break;
      simulate(plan);
    }
    climb();
    keep();
    return found_;
  }

 private:
  int micro_batches(int size) const { return divide_up(options_.batch_size, size); }
  bool is_spent() const { return actions_ >= options_.shared_effort; }

  // Returns the least bandwidth from the first device to another one; 0 if all is free.
  BytesPerSecond find_bandwidth() const {
    BytesPerSecond least;
    for (int d = 1; d < devices_; ++d) {
      const BytesPerSecond other = setting_.cluster().link(DeviceId{0}, DeviceId{d}).bandwidth;
      if (other.count > 0 && (least.count == 0 || other.count < least.count)) least = other;
    }
    return least;
  }

  Bytes find_memory_limit() const {
    const std::vector<Device>& devices = setting_.cluster().devices;
    return std::min_element(
               devices.begin(), devices.end(),
               [](const Device& a, const Device& b) { return a.memory_limit < b.memory_limit; })
        ->memory_limit;
  }

  // Adds what the partition finds, as far as its work is below the fastest plan's time.
  void propose() {
    for (const int size : options_.micro_batch_sizes) {
      propose(size, /*recompute=*/false);
      if (options_.recompute) propose(size, /*recompute=*/true);
    }
  }

  void propose(int size, bool recompute) {
    // The partition's estimate is not the simulator's time.
    const Duration most = fastest_ == kNever ? kNever : fastest_ + fastest_ / 4;
    const Duration once = evaluator_.sums_of(size, false).work({0, layers_}, recompute);
    if (once >= most) return;
    SharedProblem problem{.sums = evaluator_.sums_of(size, false),
                          .micro_batches = micro_batches(size),
                          .devices = devices_,
                          .most_stages = most_stages_,
                          .most_copies = most_copies_,
                          .recompute = recompute,
                          .is_exact = false,
                          .bandwidth = find_bandwidth(),
                          .memory_limit = find_memory_limit(),
                          .below = most == kNever ? kNever : most - once};
    std::vector<SharedCuts> layouts = cut_shared_stages(problem);
    // Reductions of mode exact take longer, but may run beside the work of other stages.
    if (options_.reduction == ReductionMode::kExact) {
      problem.is_exact = true;
      for (SharedCuts& layout : cut_shared_stages(problem)) layouts.push_back(std::move(layout));
    }
    for (SharedCuts& layout : layouts) {
      if (!has_shared_stage(layout)) continue;
      SharedPlan plan{std::move(layout), size, recompute, schedules_.front(), std::nullopt};
      proposed_.emplace_back(find_least_time(plan), std::move(plan));
    }
  }

  // Returns what the busiest stage takes for its whole micro-batches, with what must come before
  // its first forward.
  Duration find_least_time(const SharedPlan& plan) {
    const ChainSums& sums = evaluator_.sums_of(plan.micro_batch_size, false);
    const int whole = options_.batch_size / plan.micro_batch_size;
    Duration most{0};
    for (std::size_t s = 0; s < plan.layout.devices.size(); ++s) {
      const LayerSpan span = span_of(plan.layout, s, layers_);
      const Duration busy =
          sums.work(span, plan.recompute) * divide_up(whole, plan.layout.devices[s]);
      most = std::max(most, busy + (span.first > 0 ? sums.head(span.first) : Duration{0}));
    }
    return most;
  }

  // Tries PipeDream's partition, which weighs reductions and messages against work.
  void try_partitions() {
    const auto blocks = static_cast<int>(setting_.profile().blocks.size());
    if (options_.mask != FreezeMask::all_active(blocks)) return;
    if (setting_.profile().layers.size() > kMostPartitionedLayers) return;
    if (devices_ > kMostPartitionedDevices) return;
    const std::vector<ReplicaLevel> levels = find_replica_levels(setting_.cluster());
    for (const int size : options_.micro_batch_sizes) {
      try_partition(size, levels);
      // Over all devices alike there may be a better one.
      if (levels.size() > 1) try_partition(size, {{devices_, find_bandwidth()}});
    }
  }

  void try_partition(int size, const std::vector<ReplicaLevel>& levels) {
    if (is_spent()) return;
    Plan plan = make_partition_plan(setting_, options_, {size, schedules_.front(), levels});
    const std::vector<Stage>& stages = plan.pipelines.front().stages;
    const auto most =
        std::max_element(stages.begin(), stages.end(), [](const Stage& a, const Stage& b) {
          return a.devices.size() < b.devices.size();
        })->devices.size();
    const bool is_too_long =
        options_.max_stages > 0 && static_cast<int>(stages.size()) > options_.max_stages;
    if (stages.size() < 2 || most < 2 || static_cast<int>(most) > most_copies_ || is_too_long) {
      return;
    }
    if (const auto shared = read_shared_plan(plan, options_, layers_)) {
      if (find_least_time(*shared) < fastest_) simulate(*shared);
    } else {
      take(std::move(plan));
    }
  }

  // Simulates a plan, once; returns its time, kNever if it does not fit.
  Duration simulate(const SharedPlan& shared) {
    const auto [known, is_new] = times_.try_emplace(shared, kNever);
    if (is_new) known->second = take(make_plan(shared, options_, layers_));
    return known->second;
  }

  Duration take(Plan plan) {
    ++found_.tried;
    // Lowering looks at every layer several times.
    actions_ += 20 * static_cast<std::int64_t>(layers_);
    std::vector<int> deal{plan.micro_batch_size};
    for (const Stage& stage : plan.pipelines.front().stages) {
      const auto own = static_cast<int>(stage.devices.size());
      deal.push_back(own);
      // Each micro-batch has work and messages, and each owner has a part for each other one.
      actions_ += 6 * micro_batches(plan.micro_batch_size) + 4 * own * own;
    }
    Candidate candidate = evaluator_.judge_given(std::move(plan));
    if (candidate.infeasible) return kNever;
    const Duration makespan = candidate.makespan;
    fastest_ = std::min(fastest_, makespan);
    found_.fastest = std::min(found_.fastest.value_or(kNever), makespan);
    const auto [best, is_first] = best_.try_emplace(std::move(deal), candidate);
    if (!is_first && ranking_key(candidate) < ranking_key(best->second)) {
      best->second = std::move(candidate);
    }
    return makespan;
  }

  void climb() {
    std::vector<std::pair<Duration, SharedPlan>> order;
    for (const auto& [plan, time] : times_) {
      if (time < kNever) order.emplace_back(time, plan);
    }
    std::sort(order.begin(), order.end());
    if (order.size() > kClimbs) order.resize(kClimbs);
    for (auto& [time, plan] : order) {
      if (time <= fastest_ + scale_ppm(fastest_, kWorthClimbingPpm)) climb(std::move(plan), time);
    }
  }

  void climb(SharedPlan best, Duration time) {
    const SharedLimits limits{schedules_, layers_, devices_, most_copies_};
    for (bool is_better = true; is_better;) {
      is_better = false;
      for (SharedPlan& next : list_neighbours(best, limits)) {
        if (is_spent()) return;
        if (find_least_time(next) >= time) continue;
        const Duration own = simulate(next);
        if (own >= time) continue;
        time = own;
        best = std::move(next);
        is_better = true;
        break;
      }
    }
  }

  void keep() {
    for (auto& [deal, candidate] : best_) {
      if (kept_.is_slower(candidate.makespan)) continue;
      const auto gone = kept_.keep({std::move(candidate), std::nullopt, -1});
      if (gone && gone->shape) rejected_.add_slower(*gone->shape, gone->candidate.makespan);
    }
  }

  Evaluator& evaluator_;
  Setting setting_;
  const SearchOptions& options_;
  Incumbents& kept_;
  Rejections& rejected_;
  int devices_;
  int layers_;
  int most_copies_;
  int most_stages_;
  std::vector<ScheduleKind> schedules_;
  Duration fastest_ = kNever;  // of all plans
  std::vector<std::pair<Duration, SharedPlan>> proposed_;
  std::map<SharedPlan, Duration> times_;
  std::map<std::vector<int>, Candidate> best_;  // by micro-batch size and devices of the stages
  std::int64_t actions_ = 0;
  SharedStages found_;
};

}  // namespace

std::optional<SharedStages> search_shared_stages(Evaluator& evaluator, const SearchOptions& options,
                                                 Incumbents& kept, Rejections& rejected) {
  SharedSearch search(evaluator, options, kept, rejected);
  if (!search.may_look()) return std::nullopt;
  return search.run();
}

}  // namespace frazil
