#pragma once
// Writes the freeze traces that the tests hand to programs and policies.

#include <filesystem>

#include "profiles/text_file.h"
#include "traces/freeze_trace.h"

namespace frazil {

inline void write_freeze_trace(const FreezeTrace& trace, const std::filesystem::path& path) {
  write_text_file(path, to_jsonl(trace));
}

}  // namespace frazil
