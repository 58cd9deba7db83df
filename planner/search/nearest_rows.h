#pragma once
// What came nearest to fitting where nothing fits: a row for each shape and schedule that is too
// large, whatever its micro-batch sizes and depths. The candidate that misses least stands for its
// row, with the count of all.

#include <cstddef>
#include <vector>

#include "planner/prediction/ranking.h"

namespace frazil {

struct NearestRows {
  std::vector<RejectedShapes> rows;  // those that miss least first
  bool names_first = false;          // the first row is that of the named plan
};

// Returns at most `most` rows. `named` is the plan that an answer names as the nearest: it stands
// for its row, which comes first, for it was simulated, while of the others bounds say what they
// miss at least. Then the candidates of the ranking count in their rows, too. Null, or a plan that
// an interpreter refuses, names none.
NearestRows list_nearest(const Ranking& ranking, const Candidate* named, std::size_t most);

}  // namespace frazil
