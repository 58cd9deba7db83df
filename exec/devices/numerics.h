#pragma once
// Sets what must hold for equal bits: on a CPU MKL's code path, fixed before its first use and
// taken before threads meet in it, and one intra-op thread; on a GPU kernels that add in one order.
// A self-check says when a machine breaks a rule that the executor relies on.

#include <optional>
#include <string>

namespace frazil {

// Sets MKL_CBWR to the branch unless the environment chose a value, and cuBLAS's workspace
// likewise, to a size of which cuBLAS promises reproducible results. Sets one intra-op thread for
// the calling thread, and makes the first call of each function of MKL's vector math, which threads
// must not make together. Programs call prepare_kernels() (exec/devices/kernel_choice.h), which
// chooses the branch, before they start threads.
void prepare_numerics(const std::string& branch);

// Sets what GPUs need, process-wide: deterministic algorithms, no TF32, no attention kernel whose
// backward adds in any order. Flash attention may run, which takes bf16 alone and adds in one order
// under deterministic algorithms; in fp32 attention is written out in products. ComputeDevices
// calls it, and only if a run has GPUs.
void prepare_gpu_numerics();

// Tries two rules on this machine: a row of a linear layer has the same bits whatever its position
// and its neighbours; gradients are equal when computed twice. Returns the sentence of the first
// rule that fails.
std::optional<std::string> check_numerics();

}  // namespace frazil
