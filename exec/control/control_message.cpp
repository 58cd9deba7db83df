#include "exec/control/control_message.h"

#include <cstring>

#include "profiles/error.h"

namespace frazil {
namespace {

struct Head {
  std::uint32_t magic = 0x54435a46;  // "FZCT"
  std::uint16_t version = 1;
  std::uint16_t zero = 0;
  std::uint32_t body = 0;
};
static_assert(sizeof(Head) == kControlHead);

}  // namespace

std::string to_bytes(const ControlMessage& message) {
  const std::string body = encode(message);
  ENSURE(body.size() <= kLargestControlBody, "a message between leader and member is small");
  Head head;
  head.body = static_cast<std::uint32_t>(body.size());
  std::string bytes(sizeof head, '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes + body;
}

std::optional<ControlMessage> take_message(std::string_view& bytes) {
  if (bytes.size() < kControlHead) return std::nullopt;
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  const Head expected;
  if (head.magic != expected.magic || head.zero != 0) {
    throw WireError("found bytes that begin no control message");
  }
  if (head.version != expected.version) {
    throw WireError("found a control message of version " + std::to_string(head.version) +
                    ", expected version " + std::to_string(expected.version));
  }
  if (head.body > kLargestControlBody) {
    throw WireError("found a control message of " + std::to_string(head.body) +
                    " bytes, expected at most " + std::to_string(kLargestControlBody));
  }
  if (bytes.size() - kControlHead < head.body) return std::nullopt;
  auto message = decode<ControlMessage>(bytes.substr(kControlHead, head.body));
  bytes.remove_prefix(kControlHead + head.body);
  return message;
}

}  // namespace frazil
