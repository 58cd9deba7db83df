#pragma once
// Execution traces of MLCommons Chakra, schema 0.0.4 (mlcommons/chakra
// schema/protobuf/et_def.proto): one file per device, a stream of messages, each behind its length
// as a varint. First comes GlobalMetadata{version 1}, then Nodes{id 1, name 2, type 3, data_deps 5,
// start_time_micros 6, duration_micros 7, attr 10}; an attr is AttributeProto{name 1, and one
// value: int32_val 7, int64_val 9, bool_val 27, string_val 29}, also where it is 0.
//
// What readers ask for (mlcommons/chakra src/feeder/et_feeder_node.cpp and et_feeder.cpp; its
// feeder_v3 and astra-sim/astra-sim astra-sim/workload/Workload.cc):
//   - of each attribute one member of the value alone: is_cpu_op bool; comm_type, comm_size int64;
//     comm_src, comm_dst, comm_tag int32; pg_name string (feeder_v3 takes any integer)
//   - a node waits for its data_deps; ctrl_deps are passed over by all but feeder_v3, and a
//     dependency that stands twice is never fulfilled. They may point at earlier nodes alone here
//   - the time of a compute node is duration_micros; ASTRA-sim makes 0 a nanosecond. Those of the
//     other nodes are predictions that nobody reads
//   - a SEND and a RECV meet by (tag, source, destination, size); a RECV holds nobody up
//   - pg_name is a number above 0, a key of the file of groups; without one, all ranks take part
//   - a file without nodes is refused by feeder_v3
// Beside these every node has duration_ns, int64: its exact time.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct ChakraCompute {
  bool is_cpu_op = false;  // work of the host, which runs beside the device's own
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
  std::int64_t duration_micros = 0;  // how it was rounded is the caller's choice
  std::variant<ChakraCompute, ChakraMessage, ChakraCollective> work = {};
};

// The nearest microsecond of a time that is not negative, halves up.
std::int64_t nearest_microsecond(Duration time);

void append_chakra_metadata(std::string& file);
void append_chakra_node(std::string& file, const ChakraNode& node);

}  // namespace frazil
