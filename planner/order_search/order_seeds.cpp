#include "planner/order_search/order_seeds.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "planner/orders/linear_orders.h"
#include "planner/orders/zero_bubble_orders.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::array kByPriority{Letter::kI, Letter::kF, Letter::kW};

// Describes the pipeline by one K, the least, and one hop, the longest, for all stages.
OrderProblem make_problem(const LinearPipeline& pipeline) {
  OrderProblem problem;
  problem.devices = static_cast<int>(pipeline.times.size());
  problem.micro_batches = pipeline.micro_batches;
  problem.times = pipeline.times;
  problem.in_flight = *std::min_element(pipeline.in_flight.begin(), pipeline.in_flight.end());
  for (std::size_t s = 0; s + 1 < pipeline.times.size(); ++s) {
    problem.hop = std::max({problem.hop, pipeline.down[s], pipeline.up[s]});
  }
  return problem;
}

class ListScheduler {
 public:
  ListScheduler(const LinearPipeline& pipeline, const std::vector<int>& depths)
      : pipeline_(pipeline), stages_(pipeline.times.size()) {
    const bool halves = pipeline.release == ActivationRelease::kHalfAtInput;
    held_ = {2, halves ? -1 : 0, halves ? -1 : -2};
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto& [forward, input, weight] = pipeline.times[s];
      stages_[s].length = {forward, input, weight};
      stages_[s].depth = depths[s];
    }
  }

  Words run() {
    Words words(stages_.size());
    for (std::size_t left = 3 * most() * stages_.size(); left > 0; --left) {
      std::size_t first = 0;
      Duration earliest = kNever;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        for (const Letter letter : kByPriority) {
          const Duration ready = ready_at(s, letter);
          if (ready == kNever || std::max(ready, stages_[s].free) >= earliest) continue;
          earliest = std::max(ready, stages_[s].free);
          first = s;
        }
      }
      ENSURE(earliest != kNever, "every device waits for another");
      const auto letter = std::find_if(kByPriority.begin(), kByPriority.end(),
                                       [&](Letter of) { return ready_at(first, of) <= earliest; });
      perform(first, *letter, earliest);
      words[first].push_back(*letter);
    }
    return words;
  }

 private:
  struct StageState {
    std::array<Duration, kLetters> length{};
    std::array<std::vector<Duration>, kLetters> ends;  // by letter
    int depth = 1;
    int held = 0;  // halves of micro-batches
    Duration free{0};

    std::size_t done(Letter letter) const { return ends[index_of(letter)].size(); }
  };

  std::size_t most() const { return static_cast<std::size_t>(pipeline_.micro_batches); }

  // Returns when the inputs of the next work of a kind are there; kNever if that is not known.
  Duration ready_at(std::size_t s, Letter letter) const {
    const StageState& stage = stages_[s];
    const std::size_t next = stage.done(letter);
    if (next == most()) return kNever;
    const auto sent = [&](std::size_t from, Duration hop) {
      return next < stages_[from].done(letter) ? stages_[from].ends[index_of(letter)][next] + hop
                                               : kNever;
    };
    switch (letter) {
      case Letter::kF: {
        const bool is_full = stage.held + 2 > 2 * pipeline_.in_flight[s] ||
                             static_cast<int>(next - stage.done(Letter::kI)) >= stage.depth;
        if (is_full) return kNever;
        return s == 0 ? Duration{0} : sent(s - 1, pipeline_.down[s - 1]);
      }
      case Letter::kI:
        if (next == stage.done(Letter::kF)) return kNever;
        return s + 1 == stages_.size() ? Duration{0} : sent(s + 1, pipeline_.up[s]);
      case Letter::kW:
        return next < stage.done(Letter::kI) ? Duration{0} : kNever;
    }
    return kNever;
  }

  void perform(std::size_t s, Letter letter, Duration start) {
    StageState& stage = stages_[s];
    stage.free = start + stage.length[index_of(letter)];
    stage.ends[index_of(letter)].push_back(stage.free);
    stage.held += held_[index_of(letter)];
  }

  const LinearPipeline& pipeline_;
  std::vector<StageState> stages_;
  std::array<int, kLetters> held_{};  // what an F, I or W adds, in halves of micro-batches
};

// Returns depths by stage, the micro-batches in flight: K, K falling evenly along the stages, and
// as many as hide a round trip of 1 to 3 times its length (K at most).
std::vector<std::vector<int>> list_depths(const LinearPipeline& pipeline) {
  const auto stages = static_cast<int>(pipeline.times.size());
  std::vector<int> falling;
  for (int s = 0; s < stages; ++s) {
    falling.push_back(warm_up(pipeline.in_flight[static_cast<std::size_t>(s)], stages, s));
  }
  std::vector<std::vector<int>> depths{pipeline.in_flight, falling};
  Duration period{1};
  for (const StageTimes& times : pipeline.times) period = std::max(period, times.total());
  for (const int tenths : {10, 15, 20, 25, 30}) {
    std::vector<int>& depth = depths.emplace_back(pipeline.times.size(), 1);
    Duration round_trip{0};
    for (std::size_t s = pipeline.times.size() - 1; s-- > 0;) {
      const StageTimes& after = pipeline.times[s + 1];
      round_trip += after.forward + after.backward_input + pipeline.down[s] + pipeline.up[s];
      const auto hidden = 1 + (round_trip * tenths / 10 + period - Duration{1}) / period;
      depth[s] = static_cast<int>(std::min<std::int64_t>(hidden, pipeline.in_flight[s]));
    }
  }
  return depths;
}

}  // namespace

std::vector<Words> make_seed_orders(const LinearPipeline& pipeline) {
  const OrderProblem problem = make_problem(pipeline);
  const int p = problem.devices;
  const int in_flight = *problem.in_flight;
  std::vector<Words> seeds;
  const auto add = [&](const DeviceOrders& orders) { seeds.push_back(to_words(orders)); };
  const auto linear = [&](bool splits, int most) {
    OrderProblem limited = problem;
    limited.in_flight = std::min(in_flight, most);
    add(splits ? make_split_linear_order(limited, most)
               : make_one_forward_one_backward_order(limited, most));
  };
  for (const int most : {in_flight, p, 2 * p - 1}) {
    OrderProblem limited = problem;
    limited.in_flight = std::min(in_flight, most);
    add(make_zero_bubble_order(limited, pipeline.release));
    linear(true, most);
    linear(false, most);
  }
  for (const std::vector<int>& depths : list_depths(pipeline)) {
    seeds.push_back(ListScheduler(pipeline, depths).run());
  }
  return seeds;
}

}  // namespace frazil
