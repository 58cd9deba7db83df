// Messages of the joining survive their bytes, and bytes that are none are refused.

#include "exec/links/joining/join_messages.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

Secret secret_with(std::uint8_t first) {
  Secret secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) {
    secret[i] = static_cast<std::uint8_t>(first + i);
  }
  return secret;
}

std::vector<JoinMessage> one_of_each() {
  const ProcessFacts facts{.version = "0.1.0",
                           .build = 0x0123456789abcdefU,
                           .run = 2,
                           .kernels = ~std::uint64_t{0},
                           .attempt = 3,
                           .host = "node-1",
                           .pid = 4711,
                           .devices = 4};
  return {Challenge{secret_with(1), true},
          Hello{.facts = facts,
                .asked = 7,
                .port = 65535,
                .has_token = true,
                .challenge = secret_with(2),
                .nonce = secret_with(3),
                .proof = secret_with(4)},
          Welcome{.process = 1,
                  .epoch = 5,
                  .session = secret_with(5),
                  .addresses = {{"127.0.0.1", 1}, {"::1", 2}, {"", 0}},
                  .proof = secret_with(6)},
          Refusal{"the process at 127.0.0.1:1 has another run"},
          Dial{.epoch = 6,
               .from = 2,
               .to = 1,
               .link = LinkSocket::kBulk,
               .challenge = secret_with(7),
               .nonce = secret_with(8),
               .proof = secret_with(9)},
          Answer{secret_with(10)}};
}

TEST(JoinMessages, SurviveTheirBytes) {
  for (const JoinMessage& message : one_of_each()) {
    const std::string bytes = to_bytes(message);
    const auto head = parse_head(bytes.substr(0, kJoinHeadBytes));
    ASSERT_TRUE(head.has_value());
    EXPECT_EQ(head->protocol, kJoinProtocol);
    EXPECT_EQ(head->kind, message.index());
    EXPECT_EQ(head->bytes, bytes.size() - kJoinHeadBytes);
    const auto read = parse_body(head->kind, bytes.substr(kJoinHeadBytes));
    ASSERT_TRUE(read.has_value());
    EXPECT_TRUE(*read == message) << "kind " << message.index();
  }
}

// As another program must write it.
TEST(JoinMessages, BeginWithMagicVersionKindAndSize) {
  EXPECT_EQ(to_bytes(Refusal{"no"}), std::string("FRZJ\x01\0\x03\0\x04\0\0\0\x02\0no", 16));
}

TEST(JoinMessages, CutOrLengthenedAnywhereAreNone) {
  for (const JoinMessage& message : one_of_each()) {
    const std::string body = to_bytes(message).substr(kJoinHeadBytes);
    const auto kind = static_cast<std::uint8_t>(message.index());
    for (std::size_t size = 0; size < body.size(); ++size) {
      EXPECT_FALSE(parse_body(kind, body.substr(0, size)).has_value()) << size;
    }
    EXPECT_FALSE(parse_body(kind, body + "x").has_value());
  }
}

TEST(JoinMessages, OfUnknownKindsOrWithNumbersOutOfRangeAreNone) {
  EXPECT_FALSE(parse_body(6, "").has_value());
  EXPECT_FALSE(parse_body(255, std::string(100, '\0')).has_value());
  std::string body = to_bytes(Dial{}).substr(kJoinHeadBytes);
  body[16] = 2;  // the link
  EXPECT_FALSE(parse_body(4, body).has_value());
  body = to_bytes(Dial{}).substr(kJoinHeadBytes);
  body[11] = '\x80';  // from
  EXPECT_FALSE(parse_body(4, body).has_value());
  EXPECT_FALSE(parse_head("FRZK" + std::string(8, '\0')).has_value());
  EXPECT_FALSE(
      parse_head("FRZJ" + std::string(3, '\0') + "\x01" + std::string(4, '\0')).has_value());
}

// A count of addresses that the bytes cannot hold costs no memory.
TEST(JoinMessages, ThatPromiseMoreThanTheyHoldAreNone) {
  std::string body = to_bytes(Welcome{}).substr(kJoinHeadBytes);
  for (const char byte : {'\x01', '\x7f'}) {
    body[4 + 8 + 32 + 1] = byte;
    EXPECT_FALSE(parse_body(2, body).has_value());
  }
}

TEST(JoinMessages, VouchForAllButTheirProof) {
  const std::string body = to_bytes(Answer{secret_with(1)}).substr(kJoinHeadBytes);
  EXPECT_EQ(vouched_part(body), "");
  EXPECT_EQ(vouched_part("short"), "");
  EXPECT_EQ(vouched_part("x" + body), "x");
}

}  // namespace
}  // namespace frazil
