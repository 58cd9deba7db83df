// Compares nodes with the bytes that the Protocol Buffers library for Python makes of the same
// nodes under Chakra's own schema, and with that schema's numbers.

#include "traces/chakra_trace.h"

#include <gtest/gtest.h>

#include "tests/support/protobuf_fields.h"

namespace frazil {
namespace {

std::string from_hex(std::string_view digits) {
  std::string bytes;
  std::string pair;
  for (const char digit : digits) {
    if (digit == ' ') continue;
    pair.push_back(digit);
    if (pair.size() < 2) continue;
    bytes.push_back(static_cast<char>(std::stoi(pair, nullptr, 16)));
    pair.clear();
  }
  return bytes;
}

std::string node_bytes(const ChakraNode& node) {
  std::string file;
  append_chakra_node(file, node);
  return file;
}

constexpr const char* kNotOnHost = "520e 0a09 69735f6370755f6f70 d80100";  // is_cpu_op: bool false

TEST(ChakraTrace, MetadataIsThatOfTheLibrary) {
  std::string file;
  append_chakra_metadata(file);
  EXPECT_EQ(file, from_hex("07 0a05 302e302e34"));  // version "0.0.4"
}

// The members id and start are 0 and so left out; is_cpu_op is true; duration_ns 1500 is rounded to
// 2 us.
TEST(ChakraTrace, AComputeNodeIsThatOfTheLibrary) {
  ChakraNode node;
  node.name = "0F0";
  node.duration = Duration{1500};
  node.duration_micros = 2;
  node.work = ChakraCompute{.is_cpu_op = true};
  EXPECT_EQ(node_bytes(node), from_hex("2b 1203 304630 1804 3802"
                                       "520e 0a09 69735f6370755f6f70 d80101"
                                       "5210 0a0b 6475726174696f6e5f6e73 48dc0b"));
}

// The node has id 3, data_deps {0, 300} packed, start 2 us; src 0, dst 1, tag 200, 16 MiB;
// duration_ns 0.
TEST(ChakraTrace, ASendNodeIsThatOfTheLibrary) {
  ChakraNode node;
  node.id = 3;
  node.name = "0SEND_F0";
  node.data_deps = {0, 300};
  node.start = TimePoint{Duration{1500}};
  node.work = ChakraMessage{.side = ChakraMessage::Side::kSend,
                            .from = DeviceId{0},
                            .to = DeviceId{1},
                            .tag = 200,
                            .size = Bytes{16 << 20}};
  EXPECT_EQ(node_bytes(node), from_hex(std::string("73 0803 1208 3053454e445f4630 1805") +
                                       "2a03 00ac02 3002" + kNotOnHost +
                                       "520c 0a08 636f6d6d5f737263 3800"
                                       "520c 0a08 636f6d6d5f647374 3801"
                                       "520d 0a08 636f6d6d5f746167 38c801"
                                       "5210 0a09 636f6d6d5f73697a65 4880808008"
                                       "520f 0a0b 6475726174696f6e5f6e73 4800"));
}

TEST(ChakraTrace, AReceiveNodeIsThatOfTheLibrary) {
  ChakraNode node;
  node.id = 4;
  node.name = "1RECV_F0";
  node.start = TimePoint{Duration{2000}};
  node.duration = Duration{313'000};
  node.duration_micros = 313;
  node.work = ChakraMessage{.side = ChakraMessage::Side::kReceive,
                            .from = DeviceId{0},
                            .to = DeviceId{1},
                            .tag = 0,
                            .size = Bytes{1}};
  EXPECT_EQ(node_bytes(node), from_hex(std::string("6f 0804 1208 31524543565f4630 1806") +
                                       "3002 38b902" + kNotOnHost +
                                       "520c 0a08 636f6d6d5f737263 3800"
                                       "520c 0a08 636f6d6d5f647374 3801"
                                       "520c 0a08 636f6d6d5f746167 3800"
                                       "520d 0a09 636f6d6d5f73697a65 4801"
                                       "5211 0a0b 6475726174696f6e5f6e73 48a88d13"));
}

// The comm_type ALL_REDUCE is 0 and written all the same; pg_name is "2".
TEST(ChakraTrace, ACollectiveNodeIsThatOfTheLibrary) {
  ChakraNode node;
  node.id = 5;
  node.name = "1REDUCE_GRAD";
  node.data_deps = {4};
  node.start = TimePoint{Duration{1'000'000}};
  node.duration = Duration{7000};
  node.duration_micros = 7;
  node.work = ChakraCollective{
      .kind = ChakraCollective::Kind::kAllReduce, .size = Bytes{4096}, .group = "2"};
  EXPECT_EQ(node_bytes(node), from_hex(std::string("6a 0805 120c 315245445543455f47524144 1807") +
                                       "2a01 04 30e807 3807" + kNotOnHost +
                                       "520d 0a09 636f6d6d5f74797065 4800"
                                       "520e 0a09 636f6d6d5f73697a65 488020"
                                       "520d 0a07 70675f6e616d65 ea010132"
                                       "5210 0a0b 6475726174696f6e5f6e73 48d836"));
}

TEST(ChakraTrace, ACollectiveOfAllRanksHasNoGroup) {
  ChakraNode node;
  node.work = ChakraCollective{.kind = ChakraCollective::Kind::kAllGather, .size = Bytes{8}};
  const std::string file = node_bytes(node);
  EXPECT_EQ(file.find("pg_name"), std::string::npos);
  std::string_view rest = file;
  bool is_gather = false;
  for (const ProtobufField& field : read_fields(take_delimited(rest))) {
    if (field.number != 10) continue;
    const std::vector<ProtobufField> attribute = read_fields(field.bytes);
    is_gather = is_gather || (attribute[0].bytes == "comm_type" && attribute[1].number == 9 &&
                              attribute[1].value == 2);
  }
  EXPECT_TRUE(is_gather);
}

TEST(ChakraTrace, MicrosecondsAreTheNearestAndHalvesGoUp) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> table = {
      {0, 0}, {499, 0}, {500, 1}, {1499, 1}, {1500, 2}, {9'007'199'254'740'992, 9'007'199'254'741}};
  for (const auto& [time, expected] : table) {
    EXPECT_EQ(nearest_microsecond(Duration{time}), expected) << time;
  }
}

}  // namespace
}  // namespace frazil
