#pragma once
// Searches the cuts of one shape by simulated time. A proposal (planner/search/propose.h) has the
// cuts with the least bottleneck; where devices wait for each other, as they do with few
// micro-batches, other cuts take less time. climb() goes from cuts to better ones near them;
// find_below() tries every cut whose stages may keep a time (planner/bounds/stage_limits.h), so
// that what it leaves out is proven to be no faster. Groups that are alike keep equal cuts.
//
// Both spend one budget, counted in actions (F, I, W of a stage and micro-batch) of the plans that
// they time, so that equal input gives equal answers however fast the machine is.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search/evaluate.h"

namespace frazil {

class CutSearch {
 public:
  // The evaluator must outlive this.
  CutSearch(Evaluator& evaluator, std::int64_t actions)
      : evaluator_(evaluator), actions_left_(actions) {}

  // Moves the boundaries of a verdict that fits, one boundary or several neighbouring ones by one
  // layer at a time, as long as the shape takes less; true if it does. Spends `most` actions of the
  // budget, and little more.
  bool climb(const Shape& shape, Verdict& verdict, std::int64_t most);

  struct Answer {
    std::optional<Verdict> fastest;  // takes less than `below`; none if none was found
    Duration at_least = kNever;      // no cut that was not found takes less than this
  };
  // Looks for the fastest cuts under which the shape fits and takes less than `below`, within
  // `most` actions. If they suffice, at_least is the time of the fastest, or `below` without one.
  Answer find_below(const Shape& shape, Duration below, std::int64_t most);

  std::int64_t actions_left() const { return std::max<std::int64_t>(0, actions_left_); }
  std::int64_t tried() const { return tried_; }  // cuts, each timed

 private:
  struct Descent;

  bool is_spent() const { return actions_left_ <= kept_back_; }
  std::optional<Verdict> try_cuts(const Shape& shape, const Proposal& proposal, Duration below);
  bool move(const Shape& shape, Verdict& verdict, std::size_t of_class, std::size_t first,
            std::size_t last, int step);
  void descend(Descent& descent, std::size_t of_class, int stage, int first);

  Evaluator& evaluator_;
  std::int64_t actions_left_;
  std::int64_t kept_back_ = 0;  // of the actions, for later calls
  std::int64_t tried_ = 0;
};

}  // namespace frazil
