#pragma once
// Where the ranks of a world over processes live.

#include <vector>

namespace frazil {

struct ProcessPlace {
  int process = 0;                   // this one
  std::vector<int> process_of_rank;  // by rank
  int ranks_on_host = 0;             // 0: all of them
};

}  // namespace frazil
