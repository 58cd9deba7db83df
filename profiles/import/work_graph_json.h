#pragma once
// clang-format off
// Reads the JSON form of work graphs that comes with Tarnawski et al. (NeurIPS 2020), whose word
// for a device is FPGA:
//   {"maxSizePerFPGA": bytes, "maxFPGAs": k, "maxCPUs": l,
//    "nodes": [{"id", "supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode", "size",
//               "name" and "colorClass" (may be left out), ...}],
//    "edges": [{"sourceId", "destId", "cost", ...}]}
// Other members are for people and are passed over. Latencies and costs are ms in the files that
// were measured. They are read as decimals and rounded to the nearest femtosecond; sizes are
// rounded up and the limit down to whole bytes. A latency or cost is at most 9 s
// (kLargestQuantity fs).
// clang-format on

#include <filesystem>
#include <string>
#include <string_view>

#include "profiles/work_graph.h"

namespace frazil {

// Throws InputError for anything else: a cycle, an edge to nowhere or from a backward to a forward
// node, an edge twice, two costs of one node's output, a repeated id, sums that are too large, ...
WorkGraph parse_work_graph(std::string_view text, const std::string& file);
WorkGraph read_work_graph(const std::filesystem::path& path);

}  // namespace frazil
