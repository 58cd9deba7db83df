#pragma once
// clang-format off
// Writes execution traces of MLCommons Chakra, schema 0.0.4 (mlcommons/chakra
// schema/protobuf/et_def.proto): one file per device, a stream of messages, each behind its length
// as a varint. First comes GlobalMetadata{version 1}, then Nodes{id 1, name 2, type 3, data_deps 5,
// start_time_micros 6, duration_micros 7, attr 10}; an attr is AttributeProto{name 1, and one
// value: int32_val 7, int64_val 9, bool_val 27, string_val 29}. A value of 0 is written too.
//
// Readers ask for the following (mlcommons/chakra src/feeder/et_feeder_node.cpp and et_feeder.cpp;
// its feeder_v3 and astra-sim/astra-sim astra-sim/workload/Workload.cc):
//   - each attribute sets one member of the value: is_cpu_op bool; comm_type, comm_size int64;
//     comm_src, comm_dst, comm_tag int32; pg_name string (feeder_v3 takes any integer)
//   - a node waits for its data_deps; ctrl_deps are ignored by all but feeder_v3, and a dependency
//     that is listed twice is never fulfilled. In these files data_deps point at earlier nodes only
//   - the time of a compute node is duration_micros; ASTRA-sim makes 0 a nanosecond. The durations
//     of other nodes are predictions that nobody reads
//   - a SEND and a RECV meet by (tag, source, destination, size); a RECV holds nobody up
//   - pg_name is a number above 0, a key of the file of groups; without one, all ranks take part
//   - a file without nodes is refused by feeder_v3
// Every node also has duration_ns, int64: its exact time.
// clang-format on

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct ChakraCompute {
  bool is_cpu_op = false;  // work of the host, which runs beside the device's work
};

struct ChakraMessage {
  enum class Side : std::uint8_t { kSend, kReceive };
  Side side = Side::kSend;
  DeviceId from;
  DeviceId to;
  std::int32_t tag = 0;
  Bytes size;
};

struct ChakraCollective {
  enum class Kind : std::uint8_t { kAllReduce = 0, kAllGather = 2 };  // CollectiveCommType
  Kind kind = Kind::kAllReduce;
  Bytes size;
  std::string group = {};  // pg_name; empty: all ranks
};

struct ChakraNode {
  std::uint64_t id = 0;  // unique in its file
  std::string name;
  std::vector<std::uint64_t> data_deps = {};
  TimePoint start = {};              // start_time_micros is the nearest microsecond
  Duration duration{0};              // duration_ns
  std::int64_t duration_micros = 0;  // rounded as the caller chose
  std::variant<ChakraCompute, ChakraMessage, ChakraCollective> work = {};
};

// Returns the nearest microsecond, halves rounded up. Requires a time that is not negative.
std::int64_t nearest_microsecond(Duration time);

void append_chakra_metadata(std::string& file);
void append_chakra_node(std::string& file, const ChakraNode& node);

}  // namespace frazil
