#include "planner/named/uniform.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {

std::vector<int> cut_uniformly(int layers, int stages) {
  ENSURE(layers >= 1 && stages >= 1, "a layer and a stage");
  const int used = std::min(layers, stages);
  std::vector<int> cuts;
  int first = 0;
  for (int s = 0; s + 1 < used; ++s) {
    first += layers / used + (s < layers % used ? 1 : 0);
    cuts.push_back(first);
  }
  return cuts;
}

}  // namespace frazil
