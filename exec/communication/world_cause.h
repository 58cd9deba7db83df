#pragma once
// Why a world ended, as it is told from process to process.

#include <optional>
#include <string>
#include <string_view>

#include "exec/communication/communication_error.h"

namespace frazil {

struct WorldCause {
  std::string reason;
  std::optional<CommunicationFault> fault = {};
};

// Texts of any length are cut so that a frame carries them.
std::string encode_cause(const WorldCause& cause);
// Returns none for bytes that encode_cause() does not make.
std::optional<WorldCause> decode_cause(std::string_view bytes);

}  // namespace frazil
