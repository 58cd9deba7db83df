#pragma once
// The incumbents of a search: the best plans that it has found so far, those whose step, or whose
// steps to come with the transition to them, cost least. What is left to search is measured against
// the worst incumbent, and against the best one where a gap is allowed.

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/bounds/shape.h"
#include "planner/prediction/ranking.h"

namespace frazil {

struct KeptPlan {
  Candidate candidate;
  std::optional<Shape> shape;  // none: the plan was held before the search
  std::int64_t ordinal = 0;    // where listing everything would meet it
};

class Incumbents {
 public:
  // The options must outlive this.
  explicit Incumbents(const SearchOptions& options) : options_(options) {}

  bool empty() const { return plans_.empty(); }
  bool is_full() const {
    return options_.keep > 0 && plans_.size() >= static_cast<std::size_t>(options_.keep);
  }
  // From now on what is left to search is measured against the best incumbent: the others are then
  // the best of those that happened to be looked at.
  void seek_best_alone();
  const KeptPlan& best() const { return plans_.front().plan; }

  // True if no plan with this makespan or more, and these counts or more, can replace the worst
  // incumbent, or the best one if that alone is sought. `devices` (stages in all) and `stages` (of
  // a pipeline) break ties.
  bool beat(Duration makespan, int devices, int stages) const;
  // True if all places are taken and a step with this makespan or more does not cost less than the
  // best incumbent.
  bool beat_with_the_best(Duration makespan) const;
  // Returns the longest step that costs no more than the worst incumbent, or the best one if that
  // alone is sought; kNever while there is room.
  Duration most_makespan() const;
  // True if all places are taken and a step with this makespan costs more than the worst incumbent.
  bool is_slower(Duration makespan) const;

  // Returns the plans in order, best first; empties this.
  std::vector<KeptPlan> take_plans();
  // Keeps a plan, and returns the plan that has to go, maybe itself; none while there is room.
  std::optional<KeptPlan> keep(KeptPlan plan);
  // True if a kept plan is the same, or has this shape.
  bool holds(const Plan& plan) const;
  bool holds(const Shape& shape) const;
  // Drops the plan with this shape; false if there is none.
  bool drop(const Shape& shape);
  // Returns the makespan of the fastest plan; kNever without plans.
  Duration least_makespan() const;

 private:
  using Order = std::tuple<RankingKey, int, int, int, int, std::int64_t>;
  struct Entry {
    Order order;
    KeptPlan plan;
    Duration cost{0};
  };

  Duration cost_of_steps(Duration makespan) const;
  Order order_of(const KeptPlan& plan, Duration cost) const;

  bool is_measured() const { return best_alone_ ? !plans_.empty() : is_full(); }
  void find_worst();

  const SearchOptions& options_;
  std::vector<Entry> plans_;
  bool best_alone_ = false;
  std::tuple<Duration, int, int> worst_;  // cost, stages in all and of a pipeline
};

}  // namespace frazil
