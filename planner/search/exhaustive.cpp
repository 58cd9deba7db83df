// Part of planner/search/best_first.h: the search that simulates and ranks every plan.
#include "planner/search/best_first.h"

#include <algorithm>
#include <tuple>

namespace frazil {

Ranking search_exhaustively(Evaluator& evaluator) {
  Ranking ranking;
  std::vector<ShapeCell> cells;
  for (const ShapeCell& cell : list_cells(evaluator.space())) {
    cells.push_back(cell);
    for (const ShapeCell& longer : list_longer(cell, evaluator.space())) cells.push_back(longer);
  }
  const auto key = [](const ShapeCell& cell) {
    return std::tie(cell.devices, cell.micro_batch_size, cell.replicas, cell.longer);
  };
  std::sort(cells.begin(), cells.end(),
            [&](const ShapeCell& a, const ShapeCell& b) { return key(a) < key(b); });
  for (const ShapeCell& cell : cells) {
    for (const ShapeVariant& variant : list_variants(cell, evaluator.space())) {
      if (evaluator.device_classes().repeats(cell, variant.arrangement)) continue;
      ranking.candidates.push_back(evaluator.judge_whole({cell, variant}));
    }
  }
  rank(ranking.candidates);
  ranking.simulated = evaluator.simulated();
  return ranking;
}

}  // namespace frazil
