#pragma once
// What must hold for equal bits: on a CPU MKL's code path fixed before its first use, one intra-op
// thread; on a GPU kernels that add in one order. A self-check says when a machine breaks a rule
// the executor relies on.

#include <optional>
#include <string>

namespace frazil {

class ComputeDevices;

// Sets MKL_CBWR unless the environment chose a value; call it first in main: AVX2, which makes rows
// equal wherever they stand on AMD EPYC, and on Intel AVX2,STRICT, for there (Xeon at 2.5 GHz, MKL
// 2024.2) a linear layer of 10 features breaks the rule without it; it took 1.02 times as long.
// Sets cuBLAS's workspace likewise, to a size of which it promises reproducible results. Sets one
// intra-op thread for the calling thread.
void prepare_numerics();

// The same for GPUs, process-wide: deterministic algorithms, no TF32, no attention kernel whose
// backward adds in any order. Only where a run has GPUs; ComputeDevices calls it.
void prepare_gpu_numerics();

// Tries on this machine: a row of a linear layer has the same bits whatever its position and its
// neighbours; gradients are equal when computed twice. The sentence of the first rule that fails.
std::optional<std::string> check_numerics();
// Tries on these devices: a layer's output and gradient have the same bits when computed twice, and
// on each of them.
std::optional<std::string> check_numerics(const ComputeDevices& devices);

}  // namespace frazil
