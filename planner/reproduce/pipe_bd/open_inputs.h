#pragma once
// Inputs of a simulation that nobody published and that decide its answer: how the answer moves
// with the input, and which value of the input would give what was published.

#include <optional>

#include "planner/reproduce/pipe_bd/blockwise_methods.h"

namespace frazil {

// The time of a full batch for a loader of LS, which loads beside the loaders of three other
// devices. All other methods keep the loader of the task.
struct OpenLoad {
  Duration simulated{0};           // as for the other methods
  double slope_per_ms = 0;         // d speed-up / d time, by a central difference of 1 %
  double without = 0;              // the speed-up if loading took no time
  std::optional<Duration> needed;  // with which the published speed-up is simulated, if there is
};

// Finds how the speed-up of LS over `data_parallel` depends on its loading. `published` is looked
// for between no time and eight times the loader's, to a part in 2^20 of that.
OpenLoad find_open_load(const BlockwiseTask& task, const Dealing& dealing, Duration data_parallel,
                        double published);

}  // namespace frazil
