#pragma once
// Reads and replays Chakra files without the exporter: a reader that checks every field against the
// schema, and a small event loop with ASTRA-sim's rules. A node is issued when its data_deps have
// ended and its place is free, low ids first. A device computes one node at a time (host work runs
// beside it), a RECV occupies nothing, a collective begins when all of its ranks have entered.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

enum class ChakraFileNodeType { kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7 };

struct ChakraFileNode {
  std::uint64_t id = 0;
  std::string name;
  ChakraFileNodeType type = ChakraFileNodeType::kCompute;
  std::vector<std::uint64_t> data_deps;
  std::int64_t start_micros = 0;
  std::int64_t duration_micros = 0;
  std::map<std::string, std::int64_t> numbers;  // attributes
  std::string group;                            // pg_name

  std::int64_t number(const std::string& attribute) const { return numbers.at(attribute); }
};

// Throws std::runtime_error for a file that breaks the schema or what its readers ask: field
// numbers and wire types, the member of each attribute's value, ids that are not unique,
// dependencies on nodes that do not stand before, an attribute too many or too few.
std::vector<ChakraFileNode> read_chakra_file(std::string_view file);

struct ReplayLinks {
  std::int64_t latency_ns = 0;
  std::int64_t bytes_per_second = 0;  // 0: no limit
  // If true, a device has one message or collective at a time until it has arrived, as in
  // ASTRA-sim. Else a message ends when its last byte is on the link, and collectives run beside
  // messages.
  bool holds_until_arrival = false;
};

struct Replay {
  std::int64_t makespan_ns = 0;
  // The starts of COMP nodes, by device and name; nodes of one name stand one after another.
  std::vector<std::map<std::string, std::vector<std::int64_t>>> start_ns;
};

// Replays the files, where `groups` holds ranks by pg_name. Compute takes duration_micros, a
// collective its duration_ns. Throws std::runtime_error if some nodes wait for ever or the two
// sides of a message differ.
Replay replay_chakra(const std::vector<std::vector<ChakraFileNode>>& devices,
                     const ReplayLinks& links,
                     const std::map<std::string, std::vector<int>>& groups = {});

}  // namespace frazil
