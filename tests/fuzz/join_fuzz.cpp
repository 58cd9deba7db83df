// Any bytes are refused, or are a message of the joining that is written again as the same bytes.

#include <cstddef>
#include <cstdint>

#include "exec/links/joining/join_messages.h"
#include "tests/fuzz/property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frazil;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size < kJoinHeadBytes) return 0;
  const auto head = parse_head(bytes.substr(0, kJoinHeadBytes));
  if (!head || head->protocol != kJoinProtocol) return 0;
  const std::string_view body = bytes.substr(kJoinHeadBytes);
  const auto message = parse_body(head->kind, body);
  if (!message) return 0;
  require(message->index() == head->kind, "a message is of the kind that its head says");
  const std::string written = to_bytes(*message);
  require(written.substr(kJoinHeadBytes) == body, "what was read is written as the same bytes");
  require(vouched_part(body).size() <= body.size(), "a proof vouches for a part of the message");
  return 0;
}
