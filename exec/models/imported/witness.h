#pragma once
// A model file says what PyTorch computed: loss, outputs and gradients of two batches. Replaying
// them shows what no look at the graph does: whether the graph has PyTorch's gradients.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "exec/models/imported/model_file.h"

namespace frazil {

// How far a replay was compared.
enum class WitnessVerdict : std::uint8_t { kBits, kTolerance };

// Between kernels that round otherwise, each gradient may differ by this part of its largest
// magnitude, and loss and outputs by as much of theirs.
inline constexpr double kWitnessTolerance = 1e-3;

// Replays the witness: layer by layer, in training, with PyTorch's default generator. Returns kBits
// if `present` gives the bits of the file's fingerprint and all bits are equal; kTolerance if not,
// and all is within the tolerance. Throws InputError naming the parameter, the output or the loss
// that differs, for a file without a witness, and for operations that fail.
WitnessVerdict check_witness(const std::shared_ptr<const ImportedModel>& model,
                             const Fingerprint& present);

// Does so unless `folder` remembers that this file has passed under this fingerprint, and has it
// remember. Memory that cannot be read or written is as none.
WitnessVerdict check_witness_once(const std::shared_ptr<const ImportedModel>& model,
                                  const Fingerprint& present,
                                  const std::optional<std::filesystem::path>& folder);

// Returns "bit for bit" or "to a tolerance of 0.001".
std::string describe(WitnessVerdict verdict);

}  // namespace frazil
