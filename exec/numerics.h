#pragma once
// What must hold for equal bits on a CPU: MKL's code path fixed before its first use, one intra-op
// thread. A self-check says when a machine breaks a rule the executor relies on.

#include <optional>
#include <string>

namespace frazil {

// Sets MKL_CBWR=AVX2 unless the environment chose a value; call it first in main. Sets one intra-op
// thread for the calling thread.
void prepare_numerics();

// Tries on this machine: a row of a linear layer has the same bits whatever its position and its
// neighbours; gradients are equal when computed twice. The sentence of the first rule that fails.
std::optional<std::string> check_numerics();

}  // namespace frazil
