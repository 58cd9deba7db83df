#pragma once
// The file of a baseline (analysis/guard/baseline.h), JSON:
//   {"format": "frazil.baseline", "version": 1,
//    "question": {"batch_size": "32", ...}, "fingerprint": {"processor": "...", ...}, "seed": 1,
//    "values": [{"kind": "layer", "name": "block0", "median": 81234.5, "noise": 0.013,
//                "blocks": 40}, ...]}
// Medians of step, layer and link are in ns; those of prediction have no unit. Equal baselines give
// equal bytes.

#include <filesystem>
#include <string>
#include <string_view>

#include "analysis/guard/baseline.h"

namespace frazil {

std::string to_json(const Baseline& baseline);
// Throws InputError with file, line and path for anything else.
Baseline parse_baseline(std::string_view text, const std::string& file);
Baseline read_baseline(const std::filesystem::path& path);
// Writes the file beside its place and renames it.
void write_baseline(const Baseline& baseline, const std::filesystem::path& path);

}  // namespace frazil
