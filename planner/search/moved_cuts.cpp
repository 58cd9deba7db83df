#include "planner/search/moved_cuts.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace frazil {
namespace {

// Returns the last layer of each stage; none if a stage is not one range of layers.
std::optional<std::vector<LayerId>> find_ends(const Pipeline& pipeline) {
  std::vector<LayerId> ends;
  for (const Stage& stage : pipeline.stages) {
    if (stage.layers.size() != 1) return std::nullopt;
    ends.push_back(stage.layers.front().last);
  }
  return ends;
}

std::int64_t count_actions(const Plan& plan) {
  std::int64_t actions = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    std::int64_t micro_batches = 0;
    for (const MicroBatches& owned : pipeline.micro_batches) {
      micro_batches += owned.last.value - owned.first.value + 1;
    }
    actions += 3 * micro_batches * static_cast<std::int64_t>(pipeline.stages.size());
  }
  return actions;
}

class CutMover {
 public:
  CutMover(Setting setting, const SearchOptions& options, std::int64_t most_actions)
      : setting_(setting),
        options_{.clip = options.clip, .overlap = options.overlap},
        actions_left_(most_actions) {}

  // Moves the boundaries of a candidate; true if it became faster.
  bool improve(Candidate& candidate) {
    bool improved = false;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t p = 0; p < candidate.plan.pipelines.size(); ++p) {
        const auto ends = find_ends(candidate.plan.pipelines[p]);
        if (!ends) return improved;
        if (is_like_one_before(candidate.plan, p, *ends)) continue;
        for (std::size_t s = 0; s + 1 < ends->size(); ++s) {
          for (const int step : {-1, 1}) {
            while (try_move(candidate, p, s, step)) moved = improved = true;
          }
        }
      }
    }
    return improved;
  }

  std::int64_t tried() const { return tried_; }

 private:
  static bool is_like_one_before(const Plan& plan, std::size_t p,
                                 const std::vector<LayerId>& ends) {
    const auto begin = plan.pipelines.begin();
    return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(p),
                       [&](const Pipeline& other) { return find_ends(other) == ends; });
  }

  // Moves the boundary behind stage `s` of pipeline `p`, and of the pipelines that are cut alike,
  // by `step` layers; true, and the candidate is replaced, if the plan fits and becomes faster.
  bool try_move(Candidate& candidate, std::size_t p, std::size_t s, int step) {
    const auto ends = find_ends(candidate.plan.pipelines[p]);
    Plan plan = candidate.plan;
    // A cached prefix lies in the first stage.
    if (plan.cache_frozen_prefix && s == 0 && step < 0) return false;
    for (Pipeline& pipeline : plan.pipelines) {
      if (find_ends(pipeline) != ends) continue;
      LayerRange& before = pipeline.stages[s].layers.front();
      LayerRange& behind = pipeline.stages[s + 1].layers.front();
      before.last.value += step;
      behind.first.value += step;
      if (before.last < before.first || behind.last < behind.first) return false;
    }
    const std::int64_t actions = count_actions(plan);
    if (actions > actions_left_) return false;
    actions_left_ -= actions;
    ++tried_;
    Candidate other = judge_plan(std::move(plan), setting_, options_);
    if (other.infeasible || other.makespan >= candidate.makespan) return false;
    candidate = std::move(other);
    return true;
  }

  Setting setting_;
  StepOptions options_;
  std::int64_t actions_left_;
  std::int64_t tried_ = 0;
};

}  // namespace

MovedCuts move_cuts(Ranking& ranking, Setting setting, const SearchOptions& options,
                    const MovedCutsLimits& limits) {
  MovedCuts moved;
  CutMover mover(setting, options, limits.actions);
  const std::size_t plans = std::min(limits.plans, ranking.candidates.size());
  for (std::size_t c = 0; c < plans; ++c) {
    Candidate& candidate = ranking.candidates[c];
    if (!candidate.infeasible && mover.improve(candidate)) ++moved.faster;
  }
  moved.tried = mover.tried();
  if (moved.faster == 0) return moved;
  rank(ranking.candidates);
  const auto is_equal = [](const Candidate& a, const Candidate& b) { return a.plan == b.plan; };
  ranking.candidates.erase(
      std::unique(ranking.candidates.begin(), ranking.candidates.end(), is_equal),
      ranking.candidates.end());
  return moved;
}

}  // namespace frazil
