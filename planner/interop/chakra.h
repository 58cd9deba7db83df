#pragma once
// A simulated step as Chakra execution traces (traces/chakra_trace.h), which ASTRA-sim replays: one
// file per device, and the file of groups that ASTRA-sim takes beside them.
//   compute     COMP, as long as the simulator says; its micro-batches follow as in the plan's list
//   message     SEND on the one device and RECV on the other, also where the simulator has no task
//               for it, of one tag, dense from 0; at least 1 byte. Its predicted time is the link's
//               on the SEND, the latency on the RECV
//   REDUCE_GRAD COMM_COLL, ALL_REDUCE or ALL_GATHER; how it travels is the replay's affair
//   overhead    of a step: COMP of the host
// data_deps hold what the graph says inside a device and the order of its lanes. Nodes stand after
// what they wait for. Whole microseconds are differences of a lane's running total (halves up):
// sums stay within half a microsecond of the truth, each node within one. Roofline models must be
// off: no node says how many operations it takes.

#include <string>
#include <vector>

#include "planner/prediction/simulate_plan.h"

namespace frazil {

struct ChakraTraces {
  std::vector<std::string> files;  // by device, PREFIX.0.et, ...; one without work idles for 0
  // {"1": [0, 2], ...}: collectives over some of the devices. Empty: there are none.
  std::string groups;
};

// Requires: `step` is that of the plan. Throws InfeasibleError naming what a trace cannot say: a
// BARRIER, reductions that ship gradients piece by piece.
ChakraTraces to_chakra(const SimulatedStep& step, const Plan& plan, const ModelProfile& profile,
                       const Cluster& cluster);

}  // namespace frazil
