#pragma once
// What two processes on one GPU do with NCCL, part by part. Each prints what it saw as JSON lines
// and throws what is wrong.

#include <functional>
#include <string>
#include <vector>

#include "tests/gpu/nccl_pair.h"

namespace frazil {

struct NcclPart {
  std::string name;
  int seconds = 10;           // at most
  bool kills_rank_1 = false;  // on purpose
  std::function<void(const NcclPair&)> run;
};

std::vector<NcclPart> nccl_parts();

// Two processes train a small vision transformer, each one stage of it, and have the bits of one
// process.
void train_over_nccl(const NcclPair& pair);

// Prints one JSON line; only rank 0 does.
void print_line(const NcclPair& pair, const std::string& part, const std::string& members);

}  // namespace frazil
