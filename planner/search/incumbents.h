#pragma once
// The best plans that a search has found so far: those whose step, or whose steps to come with the
// switch to them, cost least. What is left to search is measured against the worst of them, and
// where a gap is allowed against the best.

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/bounds/shape.h"
#include "planner/prediction/ranking.h"

namespace frazil {

struct KeptPlan {
  Candidate candidate;
  std::optional<Shape> shape;  // none: of a plan that was held before the search
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
  const KeptPlan& best() const { return plans_.front().plan; }

  // Neither the cost of a step that takes at least so long nor what breaks ties, stages in all and
  // of a pipeline, can be less than of the worst that is kept.
  bool beat(Duration makespan, int devices, int stages) const;
  // All places are taken, and a step that takes at least so long does not cost less than the best.
  bool beat_with_the_best(Duration makespan) const;
  // The longest step that costs no more than the worst that is kept; of any length where there is
  // room.
  Duration most_makespan() const;
  bool is_slower(Duration makespan) const;

  // The one that has to go for it, maybe itself.
  std::optional<KeptPlan> keep(KeptPlan plan);
  // In order; empties this.
  std::vector<Candidate> take();

 private:
  using Order = std::tuple<RankingKey, int, int, int, int, std::int64_t>;
  struct Entry {
    Order order;
    KeptPlan plan;
    Duration cost{0};
  };

  Duration cost_of_steps(Duration makespan) const;
  Order order_of(const KeptPlan& plan, Duration cost) const;

  const SearchOptions& options_;
  std::vector<Entry> plans_;
  std::tuple<Duration, int, int> worst_;  // cost, stages in all and of a pipeline
};

}  // namespace frazil
