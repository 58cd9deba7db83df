#pragma once
// clang-format off
// Exports a simulated step as Chakra execution traces (traces/chakra_trace.h), which ASTRA-sim
// replays: one file per device, and the file of groups that ASTRA-sim takes beside these files.
//   compute     COMP node with the simulated time; micro-batches follow one another as in the plan
//   message     SEND node on the sender and RECV node on the receiver, also where the simulator has
//               no task for the message. Both have the message's tag, numbered without gaps from 0,
//               and at least 1 byte. The predicted time is that of the link on the SEND, and the
//               latency on the RECV
//   REDUCE_GRAD COMM_COLL node, ALL_REDUCE or ALL_GATHER; the replay decides on the algorithm
//   overhead    that of the step is a COMP node of the host
// data_deps hold the dependencies of the graph within a device and the order of the device's lanes.
// Nodes stand after the nodes for which they wait. Whole microseconds are differences of a lane's
// running total (halves rounded up), so sums are within half a microsecond of the exact time and
// each node is within one. A replay must turn roofline models off: no node tells its number of
// operations.
// clang-format on

#include <string>
#include <vector>

#include "planner/prediction/simulate_plan.h"
#include "profiles/setting.h"

namespace frazil {

struct ChakraTraces {
  // One per device, the content of PREFIX.0.et, ...; a device without work has one node of 0 ns.
  std::vector<std::string> files;
  // The groups of devices over which collectives run, {"1": [0, 2], ...}, without those over all
  // devices; empty where there are none.
  std::string groups;
};

// Returns the traces of the step. Throws InfeasibleError naming what a trace cannot say: a BARRIER,
// or reductions that send gradients piece by piece. Requires: `step` was simulated from `plan`.
ChakraTraces to_chakra(const SimulatedStep& step, const Plan& plan, Setting setting);

}  // namespace frazil
