#pragma once
// clang-format off
// Cuts a chain of layers into stages that lie on one device or on several, which take the
// micro-batches in turn, so that the busiest stage is least. One micro-batch passes through all
// layers, whatever the cuts; of M micro-batches on r devices, a stage of layers [a, b) then has left
//   time = (ceil(M/r) - 1) x the largest of its work and of the bytes across its cuts / B
//          + (r-1)/r x its gradients x (n + 1) / B     n = ceil(M/r) in mode exact, 1 in mode fast
// with B the bandwidth between devices, as each device ships every node of the gradient tree that
// it holds, and of micro-batches in turn no two make a node (docs/architecture.md). A stage holds
//   memory = its parameters, n sets of gradients, its optimizer state, and the saved activations of
//            ceil(D/r) micro-batches, D being the devices from it to the last stage (1f1b)
// These are estimates, good enough to propose plans; what a plan takes is what its simulation says.
// clang-format on

#include <vector>

#include "planner/bounds/chain_sums.h"
#include "profiles/units.h"

namespace frazil {

struct SharedCuts {
  std::vector<int> cuts;     // the first layer of each stage but the first
  std::vector<int> devices;  // of each stage

  friend auto operator<=>(const SharedCuts&, const SharedCuts&) = default;
};

struct SharedProblem {
  const ChainSums& sums;  // of the micro-batch size
  int micro_batches = 1;
  int devices = 1;
  int most_stages = 1;
  int most_copies = 1;  // devices of a stage
  bool recompute = false;
  bool is_exact = true;           // the mode of reduction
  BytesPerSecond bandwidth = {};  // 0: communication takes no time
  Bytes memory_limit = {};        // of each device
  Duration below = kNever;        // what takes as long is of no use

  Duration work(LayerSpan span, int copies) const;  // the part of the time that is work
  Duration time(LayerSpan span, int copies) const;
  Bytes memory(LayerSpan span, int copies, int devices_from_here) const;
};

// Finds for each number of stages from 2 on the cuts and devices with the least time of the busiest
// stage, below what is asked for, whose stages all fit. Numbers of stages for which
// nothing fits are left out. Exact for chains of up to kMostCutPlaces + 1 layers on up to
// kMostShares devices; else cuts are tried at so many places of even work, and stages take devices
// in multiples of a share.
inline constexpr int kMostCutPlaces = 48;
inline constexpr int kMostShares = 32;
std::vector<SharedCuts> cut_shared_stages(const SharedProblem& problem);

}  // namespace frazil
