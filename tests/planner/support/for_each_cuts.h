#pragma once
// Goes through every way to cut a chain, for tests that compare a search with trying everything.

#include <vector>

#include "planner/plan/plan.h"

namespace frazil {

// Calls `look` with each ascending list of `count` cuts, each before one of layers 1 .. layers - 1.
// `begun` holds the cuts that all lists begin with.
template <class Look>
void for_each_cuts(int layers, int count, const Look& look, std::vector<LayerId> begun = {}) {
  if (static_cast<int>(begun.size()) == count) return look(begun);
  for (int cut = begun.empty() ? 1 : begun.back().value + 1; cut < layers; ++cut) {
    std::vector<LayerId> longer = begun;
    longer.emplace_back(cut);
    for_each_cuts(layers, count, look, std::move(longer));
  }
}

}  // namespace frazil
