#pragma once
// A simulated step once more, on links that are shared, with calls that block, with times that
// vary: what the event engine adds to the static answer.

#include <optional>
#include <string>

#include "planner/lowering/lower.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"
#include "sim/jitter.h"

namespace frazil {

struct ContentionOptions {
  bool share_links = false;  // max-min fair shares of each device's way out and in
  bool block_sends = false;  // a SEND stops its device until it is through
  // Messages on their way per pair of devices; 0: rendezvous.
  std::optional<int> buffers = std::nullopt;
  bool wait_for_memory = false;  // a task that finds no room within its device's limit waits
  std::optional<Jitter> jitter = std::nullopt;

  bool any() const { return share_links || block_sends || buffers || wait_for_memory || jitter; }
};

struct ContendedStep {
  Duration makespan{0};          // without jitter
  std::optional<Spread> spread;  // of the draws
};

// Messages over links without a bandwidth take no time of their own, and so share and block
// nothing. Throws InfeasibleError on a deadlock, naming the tasks.
ContendedStep simulate_contended(const LoweredStep& step, const ModelProfile& profile,
                                 const Cluster& cluster, const ContentionOptions& options);

// The makespan where there is a rule besides jitter, and the spread where there is jitter.
std::string print_contended(const ContendedStep& step, const ContentionOptions& options);
// {"contended_makespan_ns": ..., "jitter": {...}}
std::string contended_json(const ContendedStep& step, const ContentionOptions& options);

}  // namespace frazil
