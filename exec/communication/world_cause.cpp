#include "exec/communication/world_cause.h"

#include <cstring>

namespace frazil {
namespace {

constexpr std::size_t kMostText = 30'000;  // two of them fit into the text of a frame

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string& bytes, const std::string& text) {
  const std::string cut = text.substr(0, kMostText);
  append(bytes, static_cast<std::uint32_t>(cut.size()));
  bytes += cut;
}

// Takes parts from the front; once one is missing, nothing is there.
class Parts {
 public:
  explicit Parts(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number take() {
    Number number{};
    const std::string_view part = take_bytes(sizeof number);
    if (!failed_) std::memcpy(&number, part.data(), sizeof number);
    return number;
  }
  std::string take_text() { return std::string(take_bytes(take<std::uint32_t>())); }
  bool is_whole() const { return !failed_ && bytes_.empty(); }

 private:
  std::string_view take_bytes(std::size_t count) {
    failed_ = failed_ || count > bytes_.size();
    if (failed_) return {};
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace

std::string encode_cause(const WorldCause& cause) {
  std::string bytes;
  append_text(bytes, cause.reason);
  append(bytes, static_cast<std::uint8_t>(cause.fault.has_value()));
  if (!cause.fault) return bytes;
  append(bytes, cause.fault->kind);
  append(bytes, static_cast<std::int32_t>(cause.fault->rank));
  append(bytes, static_cast<std::int32_t>(cause.fault->peer));
  append(bytes, static_cast<std::uint8_t>(cause.fault->step.has_value()));
  append(bytes, cause.fault->step.value_or(0));
  append_text(bytes, cause.fault->awaited);
  return bytes;
}

std::optional<WorldCause> decode_cause(std::string_view bytes) {
  Parts parts(bytes);
  WorldCause cause{.reason = parts.take_text()};
  if (parts.take<std::uint8_t>() != 0) {
    CommunicationFault fault;
    const auto kind = parts.take<std::uint8_t>();
    if (kind > static_cast<std::uint8_t>(CommunicationFault::Kind::kOrder)) return std::nullopt;
    fault.kind = static_cast<CommunicationFault::Kind>(kind);
    fault.rank = parts.take<std::int32_t>();
    fault.peer = parts.take<std::int32_t>();
    const bool has_step = parts.take<std::uint8_t>() != 0;
    const auto step = parts.take<Step>();
    if (has_step) fault.step = step;
    fault.awaited = parts.take_text();
    fault.sentence = cause.reason;
    cause.fault = std::move(fault);
  }
  if (!parts.is_whole()) return std::nullopt;
  return cause;
}

}  // namespace frazil
