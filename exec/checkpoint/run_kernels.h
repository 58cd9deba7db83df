#pragma once
// clang-format off
// The kernels that a run was computed with, in the file "kernels.json" beside its checkpoints: a
// resume takes the same branches again, or is refused, since other kernels give other bits.
//   {"format": "frazil.kernels", "version": 1, "hash": "<16 hex digits>", "kernels": [
//     {"from_step": 0, "other_bits": false, "processor": "..", "vendor": "..", "features": "..",
//      "aten": "AVX512", "mkl": "AVX2", "torch": "2.11.0"}, ...]}
// "other_bits" is true where a person has accepted that bits differ from that step on. "hash" is
// that of all entries; the journal has the hash of each.
// clang-format on

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exec/devices/kernel_facts.h"
#include "exec/disk/file_system.h"
#include "profiles/units.h"

namespace frazil {

struct RunKernels {
  Step from = 0;
  bool other_bits = false;
  KernelFacts facts;
  friend bool operator==(const RunKernels&, const RunKernels&) = default;
};

std::uint64_t hash_kernels(const KernelFacts& facts);

// Returns none if the file is missing or is not as it was written. Throws InputError if the folder
// cannot be listed.
std::optional<std::vector<RunKernels>> read_kernels(const FileSystem& files,
                                                    const std::filesystem::path& folder);
// Writes the file by rename; it is durable when this returns. Throws InputError.
void write_kernels(const FileSystem& files, const std::filesystem::path& folder,
                   const std::vector<RunKernels>& kernels);

// Returns "bits differ from step 40 on: AVX2 of ATen ..., before AVX512 of ATen ..." for each
// accepted change; empty if there was none.
std::string tell_other_bits(const std::vector<RunKernels>& kernels);

}  // namespace frazil
