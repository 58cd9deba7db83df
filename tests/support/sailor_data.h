#pragma once
// Finds Sailor's public measurements, if they are at hand.

#include <filesystem>
#include <system_error>

namespace frazil {

inline std::filesystem::path sailor_data() {
  return std::filesystem::path(FRAZIL_SOURCE_FOLDER) / ".." / "shared" / "data" / "sailor";
}

inline bool has_sailor_data() {
  std::error_code ignored;
  return std::filesystem::exists(sailor_data() / "llm_info.json", ignored);
}

}  // namespace frazil
