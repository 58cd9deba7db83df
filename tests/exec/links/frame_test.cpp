// The head of a frame comes back as it was, and whatever else the bytes are, they are refused in a
// sentence.

#include "exec/links/frame.h"

#include <gtest/gtest.h>

#include <functional>

#include "exec/links/checksum.h"

namespace frazil {
namespace {

FrameHead message() {
  FrameHead head{.kind = FrameKind::kMessage,
                 .checked = true,
                 .epoch = 3,
                 .from = 1,
                 .to = 2,
                 .tag = {.kind = MessageKind::kLayerState,
                         .pipeline = 1,
                         .from = 2,
                         .stage = 3,
                         .index = 4,
                         .step = Step{1} << 40},
                 .order = 5,
                 .number = 6,
                 .text = {}};
  head.tensors.push_back({.type = 6,
                          .place = TensorPlace::kBehind,
                          .checksum = 7,
                          .bytes = 24,
                          .shape = {2, 3},
                          .strides = {1, 2}});
  head.tensors.push_back({});
  head.tensors.push_back({.type = 4,
                          .place = TensorPlace::kLent,
                          .bytes = 64,
                          .address = 4096,
                          .shape = {1, 8},
                          .strides = {77, 1}});
  return head;
}

std::string refusal_of(const std::string& bytes) {
  try {
    (void)decode_frame(bytes);
  } catch (const FrameError& error) {
    return error.what();
  }
  return "";
}

std::string refusal_with(const std::function<void(FrameHead&)>& change) {
  FrameHead head = message();
  change(head);
  return refusal_of(encode_frame(head));
}

TEST(Frame, ComesBackAsItWas) {
  EXPECT_EQ(decode_frame(encode_frame(message())), message());
  for (int kind = 0; kind <= 7; ++kind) {
    FrameHead head{.kind = static_cast<FrameKind>(kind), .number = 1, .text = "why"};
    EXPECT_EQ(decode_frame(encode_frame(head)), head);
  }
}

TEST(Frame, WithOneBitFlippedIsRefused) {
  const std::string bytes = encode_frame(message());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(refusal_of(flipped), "") << "bit " << bit;
  }
}

TEST(Frame, CutOrContinuedIsRefused) {
  const std::string bytes = encode_frame(message());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(refusal_of(bytes.substr(0, length)), "") << length;
  }
  EXPECT_NE(refusal_of(bytes + '\0'), "");
}

TEST(Frame, ThatLiesIsRefusedInASentence) {
  EXPECT_EQ(refusal_with([](FrameHead& head) { head.tensors[0].bytes = 25; }),
            "found a tensor of bytes 25, expected 24");
  EXPECT_EQ(refusal_with([](FrameHead& head) {
              head.tensors[0].strides = {3, 2};
            }),
            "found strides with gaps in dimension 1, expected none");
  EXPECT_EQ(refusal_with([](FrameHead& head) {
              head.tensors[0].strides = {1, 1};
            }),
            "found strides with gaps in dimension 1, expected none");
  EXPECT_EQ(refusal_with([](FrameHead& head) { head.tensors[0].type = 12; }),
            "found the tensor type 12, expected a type that frames carry");
  EXPECT_EQ(refusal_with([](FrameHead& head) { head.tensors[2].address = 0; }),
            "found the address 0, expected one of lent bytes");
  EXPECT_NE(refusal_with([](FrameHead& head) {
              head.tensors[0].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
            }),
            "");
  EXPECT_NE(refusal_with([](FrameHead& head) { head.tensors[0].shape = {-2, -3}; }), "");
  EXPECT_NE(refusal_with([](FrameHead& head) {
              head.tensors[0].shape.assign(17, 1);
              head.tensors[0].strides.assign(17, 1);
            }),
            "");
  EXPECT_NE(refusal_with([](FrameHead& head) { head.kind = FrameKind::kBarrier; }), "");
  EXPECT_NE(refusal_with([](FrameHead& head) { head.text.assign(70'000, 'x'); }), "");
}

TEST(Frame, SaysItsLengthFromItsFirstBytes) {
  const std::string bytes = encode_frame(message());
  EXPECT_EQ(read_head_bytes(std::string_view(bytes).substr(0, kPrefixBytes)), bytes.size());
  FrameLimits limits;
  limits.head_bytes = bytes.size() - 1;
  EXPECT_THROW((void)read_head_bytes(bytes, limits), FrameError);
}

TEST(Checksum, IsTheOneThatOthersCompute) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283U);
  EXPECT_EQ(crc32c("6789", 4, crc32c("12345", 5)), 0xe3069283U);
}

}  // namespace
}  // namespace frazil
