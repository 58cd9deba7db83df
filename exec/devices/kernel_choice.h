#pragma once
// clang-format off
// Chooses the branch of MKL's kernels for this process: the fastest one under which the rules of
// exec/devices/numerics.h hold on this machine. MKL reads MKL_CBWR once, at its first use, so every
// branch is tried in child processes of its own. The answer is kept for the processes to come, in
// "kernels-<hash of what it is for>.json" of a folder of this user:
//   {"format": "frazil.kernel_choice", "version": 1, "for": "AMD EPYC 7B13 (avx avx2 ...), torch 2.11.0",
//    "trials": [{"branch": "AVX2", "holds": true, "time_ns": 812345}, ...]}
// It counts for the processor and the torch that it names; a file that cannot be read does not.
// clang-format on
//
// One machine always takes the same branch, so that equal runs there give equal bits.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "profiles/units.h"

namespace frazil {

enum class Kernels : std::uint8_t { kFastest, kPortable };

// Prepares this process for equal bits (exec/devices/numerics.h) under the branch that is asked
// for, or under the one that the environment names in MKL_CBWR. The portable one is taken also
// where no folder can keep an answer. Call it first in main.
void prepare_kernels(Kernels kernels = Kernels::kFastest);

// All trials of one process take some seconds.
inline constexpr Duration kTrialPatience = std::chrono::seconds(30);

struct KernelTrial {
  std::string branch;  // a value of MKL_CBWR
  bool holds = false;  // rows do not depend on their position, and gradients repeat
  Duration time{0};    // of the linear layers that are tried
  friend bool operator==(const KernelTrial&, const KernelTrial&) = default;
};

// Returns the branch that every processor with AVX2 has: weights that move between processors keep
// their bits where libraries are the same. On Intel it is strict, for without that a linear layer
// of 10 features breaks the rule on rows there.
std::string portable_branch();
// Returns the branches to try: those that this processor has, the portable one first; on Intel
// strict ones alone.
std::vector<std::string> list_branches();

// Tries each branch in two child processes, one branch after the other and then all again, and
// takes the shorter time. Must be called before this process uses MKL and while it has one thread.
// Returns none if a child could not be started, or did not answer within the patience and was
// ended.
std::optional<std::vector<KernelTrial>> try_branches(const std::vector<std::string>& branches,
                                                     Duration patience = kTrialPatience);

// Returns the fastest branch that holds, but an earlier one of the list unless a later one takes
// less than 97 % of its time: two trials differ by about as much by themselves, and one that is
// made again should choose the same.
std::string fastest_branch(const std::vector<KernelTrial>& trials);

// Returns a branch that holds and is not the fastest: the portable one if that is another; none if
// no other holds.
std::optional<std::string> other_branch(const std::vector<KernelTrial>& trials);

// Returns the trials that the folder keeps for this processor and torch. Else tries all branches,
// one process of the user at a time, and keeps the answer. Returns none if the trials could not be
// made or kept, or no branch holds. Waits for another process, and for each child, at most as long
// as `patience`; if that was too short, says on stderr that the portable branch is taken, and why.
std::optional<std::vector<KernelTrial>> known_trials(const std::filesystem::path& folder,
                                                     Duration patience = kTrialPatience);

// Returns where a user keeps what can be made again: $XDG_CACHE_HOME/frazil or ~/.cache/frazil;
// none without either variable.
std::optional<std::filesystem::path> cache_folder();

}  // namespace frazil
