#include "traces/protobuf_wire.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/support/protobuf_fields.h"

namespace frazil {
namespace {

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

// These are the worked examples of the guide's page "Encoding".
TEST(ProtobufWire, WritesTheExamplesOfTheGuide) {
  ProtobufMessage first;
  first.add_integer(1, 150);
  EXPECT_EQ(first.bytes(), bytes_of({0x08, 0x96, 0x01}));
  ProtobufMessage second;
  second.add_text(2, "testing");
  EXPECT_EQ(second.bytes(), bytes_of({0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67}));
  ProtobufMessage third;
  third.add_message(3, first);
  EXPECT_EQ(third.bytes(), bytes_of({0x1a, 0x03, 0x08, 0x96, 0x01}));
  ProtobufMessage packed;
  const std::vector<std::uint64_t> values = {3, 270, 86942};
  packed.add_packed(6, values);
  EXPECT_EQ(packed.bytes(), bytes_of({0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05}));
  // An int64 of -2 takes ten bytes.
  ProtobufMessage negative;
  negative.add_integer(1, static_cast<std::uint64_t>(std::int64_t{-2}));
  EXPECT_EQ(negative.bytes(),
            bytes_of({0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
}

TEST(ProtobufWire, LeavesOutAnEmptyRepeatedFieldAndKeepsAnEmptyText) {
  ProtobufMessage message;
  message.add_packed(5, {});
  EXPECT_EQ(message.bytes(), "");
  message.add_text(2, "");
  EXPECT_EQ(message.bytes(), bytes_of({0x12, 0x00}));
}

TEST(ProtobufWire, AKeyOfALargeFieldNumberHasTwoBytes) {
  ProtobufMessage message;
  message.add_integer(27, 1);
  EXPECT_EQ(message.bytes(), bytes_of({0xd8, 0x01, 0x01}));
}

TEST(ProtobufWire, VarintsAreReadBackAndAreAsShortAsTheyCanBe) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t value =
        i == 0 ? std::numeric_limits<std::uint64_t>::max() : random() >> (random() % 64);
    std::string bytes;
    append_varint(bytes, value);
    std::string_view rest = bytes;
    ASSERT_EQ(take_varint(rest), value);
    EXPECT_TRUE(rest.empty());
    std::size_t length = 1;
    for (std::uint64_t left = value / 128; left > 0; left /= 128) ++length;
    EXPECT_EQ(bytes.size(), length);
  }
}

TEST(ProtobufWire, AStreamIsReadBackMessageByMessage) {
  std::string stream;
  std::vector<std::string> written;
  for (const std::size_t size : {0U, 1U, 100U, 127U, 128U, 20'000U}) {
    ProtobufMessage message;
    if (size > 0) message.add_text(1, std::string(size, 'x'));
    append_delimited(stream, message);
    written.push_back(message.bytes());
  }
  const std::vector<std::string_view> read = read_stream(stream);
  ASSERT_EQ(read.size(), written.size());
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], written[i]);
}

}  // namespace
}  // namespace frazil
