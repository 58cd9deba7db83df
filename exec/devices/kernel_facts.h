#pragma once
// Says which kernels do the arithmetic of a process: what a run must find again to give the same
// bits. Two libraries choose theirs when they are first used: ATen by ATEN_CPU_CAPABILITY and
// MKL by MKL_CBWR, or by the processor.

#include <optional>
#include <string>

namespace frazil {

struct KernelFacts {
  std::string processor;  // "AMD EPYC 7B13 64-Core Processor"
  std::string vendor;     // "AuthenticAMD"; MKL asks for it
  std::string features;   // those that kernels are written for: "avx avx2 avx512f fma ..."
  std::string aten;       // "AVX512", "AVX2" or "DEFAULT"
  std::string mkl;        // the value of MKL_CBWR, or "unset"
  std::string torch;      // version
  friend bool operator==(const KernelFacts&, const KernelFacts&) = default;
};

// Returns the facts of this process. ATen's branch is settled then, and stays.
KernelFacts present_kernels();

// Returns "AVX2 of ATen and AVX2,STRICT of MKL on GenuineIntel with torch 2.11.0": what decides the
// bits.
std::string describe(const KernelFacts& kernels);
// True if nothing that decides the bits differs. The model of the processor and its features do
// not, as long as the branches are the same.
bool gives_same_bits(const KernelFacts& a, const KernelFacts& b);

// Returns the instructions among the features that products in bfloat16 are made of:
// "avx512_bf16 amx_bf16"; "none" if there are none of these and they are emulated.
std::string narrow_instructions(const KernelFacts& kernels);

// Sets the environment such that this process takes the recorded branches, where the processor has
// them. Returns the assignment that another one in the environment gave way to, if there was one:
// "ATEN_CPU_CAPABILITY=avx2 in place of default". Call it before torch computes anything.
std::optional<std::string> select_kernels(const KernelFacts& recorded);

}  // namespace frazil
