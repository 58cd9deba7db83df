#pragma once
// What a search leaves out, each with its reason, as long as there is one.

#include <vector>

#include "planner/bounds/shape.h"
#include "planner/bounds/work_bound.h"
#include "planner/prediction/ranking.h"

namespace frazil {

class Rejections {
 public:
  // `single`: the shape itself; else `candidates` variants of its cell.
  void add(const Shape& shape, bool single, std::int64_t candidates, const Rejection& rejection);
  void add_bounded(const Shape& shape, bool single, std::int64_t candidates,
                   const NamedBound& bound);
  void add_slower(const Shape& shape, Duration makespan);
  // A shape that is shown as a candidate is not counted among the rejected.
  void take_back(const Shape& shape);
  // Those with candidates, against the slowest plan that was kept; zero: none was.
  std::vector<RejectedShapes> list(Duration against);

 private:
  std::vector<RejectedShapes> all_;
};

}  // namespace frazil
