#pragma once
// The shapes that a search leaves out, each with its reason.

#include <vector>

#include "planner/bounds/shape.h"
#include "planner/bounds/work_bound.h"
#include "planner/prediction/ranking.h"

namespace frazil {

class Rejections {
 public:
  // Adds a rejection of the shape itself if `single`, else of `candidates` variants of its cell.
  void add(const Shape& shape, bool single, std::int64_t candidates, const Rejection& rejection);
  void add_bounded(const Shape& shape, bool single, std::int64_t candidates,
                   const NamedBound& bound);
  void add_slower(const Shape& shape, Duration makespan);
  // Takes one back: a shape that is shown as a candidate is not counted among the rejected.
  void take_back(const Shape& shape);
  // Returns the rejections that stand for some candidates, and empties this. `against`: the
  // makespan of the slowest plan that was kept; zero if none was.
  std::vector<RejectedShapes> list(Duration against);

 private:
  std::vector<RejectedShapes> all_;
};

}  // namespace frazil
