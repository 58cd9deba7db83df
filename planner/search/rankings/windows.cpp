#include "planner/search/rankings/windows.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "planner/plan/step_window.h"
#include "planner/prediction/simplicity.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/search/rankings/hybrid_starts.h"

namespace frazil {
namespace {

int count_losses(const ModelProfile& profile) {
  const auto losses = std::count_if(profile.layers.begin(), profile.layers.end(),
                                    [](const Layer& layer) { return layer.has_loss; });
  return static_cast<int>(losses);
}

// Tries plans until the effort is spent.
class AheadSearch {
 public:
  AheadSearch(Setting setting, const SearchOptions& options)
      : setting_(setting), options_(options) {}

  // Returns the plan with steps ahead; none if it cannot have them or does not fit.
  std::optional<Candidate> begin(Plan plan) {
    plan.steps_ahead = options_.steps_ahead;
    if (count_window(plan, setting_, step_options()) == 1) return std::nullopt;
    return judge(std::move(plan));
  }

  // Returns the best that moving its cuts leads to.
  Candidate improve(Candidate best) {
    while (std::optional<Candidate> faster = move_cuts(best)) best = *std::move(faster);
    return best;
  }

  int tried() const { return tried_; }

 private:
  StepOptions step_options() const { return {.clip = options_.clip, .overlap = options_.overlap}; }

  // Returns none for a plan that does not fit, or once the effort is spent.
  std::optional<Candidate> judge(Plan plan) {
    if (tasks_ >= kAheadEffort) return std::nullopt;
    ++tried_;
    const auto layers = static_cast<std::int64_t>(setting_.profile().layers.size());
    // Of each layer and micro-batch: forward, backward, and a message at most.
    tasks_ += 3 * layers * plan.micro_batches() * (plan.steps_ahead + 1);
    Candidate candidate = judge_plan(std::move(plan), setting_, step_options());
    if (candidate.infeasible) return std::nullopt;
    return candidate;
  }

  // Returns the fastest plan in which cuts next to each other have moved together; none if none is
  // faster. A stage in the middle of a full pipeline cannot give away a layer by one cut alone.
  std::optional<Candidate> move_cuts(const Candidate& candidate) {
    std::optional<Candidate> best;
    const std::size_t stages = candidate.plan.pipelines.front().stages.size();
    for (std::size_t first = 0; first + 1 < stages; ++first) {
      for (std::size_t last = first; last + 1 < stages; ++last) {
        for (const int by : {-3, -2, -1, 1, 2, 3}) {
          std::optional<Plan> moved = moved_by(candidate.plan, first, last, by);
          if (!moved) continue;
          std::optional<Candidate> other = judge(*std::move(moved));
          const Duration fastest = best ? best->makespan : candidate.makespan;
          if (other && other->makespan < fastest) best = std::move(other);
        }
      }
    }
    return best;
  }

  // Returns the plan with the cuts behind stages `first` to `last` moved in every pipeline; none
  // where a stage would be empty or has parts, or where a pipeline has fewer stages.
  static std::optional<Plan> moved_by(Plan plan, std::size_t first, std::size_t last, int by) {
    for (Pipeline& pipeline : plan.pipelines) {
      if (pipeline.stages.size() <= last + 1) return std::nullopt;
      for (std::size_t s = first; s <= last; ++s) {
        std::vector<LayerRange>& before = pipeline.stages[s].layers;
        std::vector<LayerRange>& behind = pipeline.stages[s + 1].layers;
        if (before.size() != 1 || behind.size() != 1) return std::nullopt;
        if (before[0].last.value + 1 != behind[0].first.value) return std::nullopt;
        before[0].last = LayerId{before[0].last.value + by};
        behind[0].first = LayerId{behind[0].first.value + by};
      }
      for (std::size_t s = first; s <= last + 1; ++s) {
        const LayerRange& range = pipeline.stages[s].layers[0];
        if (range.last.value < range.first.value) return std::nullopt;
      }
    }
    return plan;
  }

  const Setting setting_;
  const SearchOptions& options_;
  std::int64_t tasks_ = 0;
  int tried_ = 0;
};

bool has_steps_to_be_ahead(const Plan& plan) {
  return plan.steps_ahead == 0 && !plan.cache_frozen_prefix &&
         plan.versions == WeightVersions::kSync && count_used_devices(plan) > 1 &&
         plan.pipelines.front().stages.size() > 1;
}

std::vector<Plan> list_starts(Setting setting, const SearchOptions& options,
                              const Ranking& ranking) {
  std::vector<Plan> starts;
  for (const Candidate& candidate : ranking.candidates) {
    if (!candidate.infeasible && has_steps_to_be_ahead(candidate.plan)) {
      starts.push_back(candidate.plan);
    }
  }
  std::vector<Plan> hybrids = list_hybrid_starts(setting, options);
  std::move(hybrids.begin(), hybrids.end(), std::back_inserter(starts));
  return starts;
}

bool is_known(const std::vector<Candidate>& candidates, const Plan& plan) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& other) { return other.plan == plan; });
}

}  // namespace

void add_windows(Setting setting, const SearchOptions& options, Ranking& ranking) {
  if (options.steps_ahead == 0 || options.clip || ranking.best() == nullptr) return;
  if (count_losses(setting.profile()) < 2) return;
  AheadSearch search(setting, options);
  std::vector<Candidate> begun;
  for (Plan& start : list_starts(setting, options, ranking)) {
    std::optional<Candidate> ahead = search.begin(std::move(start));
    if (ahead) begun.push_back(*std::move(ahead));
  }
  // The effort may end with the first ones.
  rank(begun);
  std::vector<Candidate> found;
  for (Candidate& start : begun) {
    Candidate ahead = search.improve(std::move(start));
    if (!is_known(found, ahead.plan)) found.push_back(std::move(ahead));
  }
  ranking.ahead = SearchedWindows{search.tried(), std::nullopt};
  for (Candidate& ahead : found) {
    Duration& fastest = ranking.ahead->fastest ? *ranking.ahead->fastest
                                               : ranking.ahead->fastest.emplace(ahead.makespan);
    fastest = std::min(fastest, ahead.makespan);
    ranking.candidates.push_back(std::move(ahead));
  }
  rank(ranking.candidates);
}

}  // namespace frazil
