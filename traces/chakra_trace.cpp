#include "traces/chakra_trace.h"

#include "traces/protobuf_wire.h"

namespace frazil {
namespace {

// Values of NodeType in the schema.
enum NodeType : std::uint64_t {
  kComputeNode = 4,
  kSendNode = 5,
  kReceiveNode = 6,
  kCollectiveNode = 7
};

enum NodeField : std::uint32_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kDataDeps = 5,
  kStartMicros = 6,
  kDurationMicros = 7,
  kAttribute = 10
};

// The members of AttributeProto's value.
enum ValueField : std::uint32_t { kInt32 = 7, kInt64 = 9, kBool = 27, kString = 29 };

void add_unless_zero(ProtobufMessage& message, std::uint32_t field, std::uint64_t value) {
  if (value != 0) message.add_integer(field, value);
}

ProtobufMessage begin_attribute(std::string_view name) {
  ProtobufMessage attribute;
  attribute.add_text(1, name);
  return attribute;
}

void add_attribute(ProtobufMessage& node, std::string_view name, ValueField type,
                   std::int64_t value) {
  ProtobufMessage attribute = begin_attribute(name);
  attribute.add_integer(type, static_cast<std::uint64_t>(value));
  node.add_message(kAttribute, attribute);
}

NodeType type_of(const ChakraNode& node) {
  if (std::holds_alternative<ChakraCompute>(node.work)) return kComputeNode;
  const auto* message = std::get_if<ChakraMessage>(&node.work);
  if (message == nullptr) return kCollectiveNode;
  return message->side == ChakraMessage::Side::kSend ? kSendNode : kReceiveNode;
}

void add_work(ProtobufMessage& node, const ChakraCompute& compute) {
  add_attribute(node, "is_cpu_op", kBool, compute.is_cpu_op ? 1 : 0);
}

void add_work(ProtobufMessage& node, const ChakraMessage& message) {
  add_attribute(node, "is_cpu_op", kBool, 0);
  add_attribute(node, "comm_src", kInt32, message.from.value);
  add_attribute(node, "comm_dst", kInt32, message.to.value);
  add_attribute(node, "comm_tag", kInt32, message.tag);
  add_attribute(node, "comm_size", kInt64, message.size.count);
}

void add_work(ProtobufMessage& node, const ChakraCollective& collective) {
  add_attribute(node, "is_cpu_op", kBool, 0);
  add_attribute(node, "comm_type", kInt64, static_cast<std::int64_t>(collective.kind));
  add_attribute(node, "comm_size", kInt64, collective.size.count);
  if (collective.group.empty()) return;
  ProtobufMessage group = begin_attribute("pg_name");
  group.add_text(kString, collective.group);
  node.add_message(kAttribute, group);
}

}  // namespace

std::int64_t nearest_microsecond(Duration time) {
  constexpr std::int64_t kNanoseconds = 1000;
  const std::int64_t count = time.count();
  return count / kNanoseconds + (count % kNanoseconds >= kNanoseconds / 2 ? 1 : 0);
}

void append_chakra_metadata(std::string& file) {
  ProtobufMessage metadata;
  metadata.add_text(1, "0.0.4");
  append_delimited(file, metadata);
}

void append_chakra_node(std::string& file, const ChakraNode& node) {
  ProtobufMessage message;
  add_unless_zero(message, kId, node.id);
  message.add_text(kName, node.name);
  message.add_integer(kType, type_of(node));
  message.add_packed(kDataDeps, node.data_deps);
  add_unless_zero(message, kStartMicros,
                  static_cast<std::uint64_t>(nearest_microsecond(node.start.time_since_epoch())));
  add_unless_zero(message, kDurationMicros, static_cast<std::uint64_t>(node.duration_micros));
  std::visit([&](const auto& work) { add_work(message, work); }, node.work);
  add_attribute(message, "duration_ns", kInt64, node.duration.count());
  append_delimited(file, message);
}

}  // namespace frazil
