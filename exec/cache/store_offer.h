#pragma once
// Tells the processes of a host where one of them has its rows (exec/cache/host_rows.h), so that
// the others can open them.

#include <cstdint>
#include <string>

namespace frazil {

struct StoreOffer {
  // Names the system that runs and the space of its process numbers: processes with equal names see
  // each other's descriptors. Empty: the rows are for one process alone.
  std::string host = {};
  int process = 0;            // of the run
  int pid = 0;                // of the system
  int memory = -1;            // descriptor of the rows in memory
  int disk = -1;              // descriptor of the file on disk; -1: there is none
  std::uint64_t id = 0;       // differs between any two stores
  std::uint64_t changes = 0;  // how often its rows have come or gone
};

}  // namespace frazil
