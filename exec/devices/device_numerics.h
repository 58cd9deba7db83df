#pragma once
// A self-check that a run's devices compute the same bits, each of them twice and all of them
// alike.

#include <optional>
#include <string>

namespace frazil {

class ComputeDevices;

// Tries on these devices that a layer's output and gradients have the same bits when computed
// twice, and on each of the devices. Returns the sentence of the first failure.
std::optional<std::string> check_numerics(const ComputeDevices& devices);

}  // namespace frazil
