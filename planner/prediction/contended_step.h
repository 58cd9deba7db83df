#pragma once
// Simulates a step once more with the event engine: on links that are shared, with calls that
// block, with times that vary. The static answer leaves all three out.

#include <optional>
#include <string>

#include "planner/lowering/lower.h"
#include "profiles/setting.h"
#include "sim/jitter.h"

namespace frazil {

struct ContentionOptions {
  bool share_links = false;  // max-min fair shares of each device's way out and in
  bool block_sends = false;  // a SEND stops its device until it is through
  // The most messages on their way per pair of devices; 0 is rendezvous, none is no limit.
  std::optional<int> buffers = std::nullopt;
  bool wait_for_memory = false;  // a task that finds no room within its device's limit waits
  std::optional<Jitter> jitter = std::nullopt;

  bool any() const { return share_links || block_sends || buffers || wait_for_memory || jitter; }
};

struct ContendedStep {
  Duration makespan{0};          // without jitter
  std::optional<Spread> spread;  // of the makespans of the draws
};

// Simulates the step under the options. Messages over links without a bandwidth take no time of
// their own, and so share and block nothing. Throws InfeasibleError naming the tasks of a deadlock.
ContendedStep simulate_contended(const LoweredStep& step, Setting setting,
                                 const ContentionOptions& options);

// Prints the makespan if there is an option besides jitter, and the spread if there is jitter.
std::string print_contended(const ContendedStep& step, const ContentionOptions& options);
// Returns {"contended_makespan_ns": ..., "jitter": {...}}; "jitter" stands only if there is jitter.
std::string contended_json(const ContendedStep& step, const ContentionOptions& options);

}  // namespace frazil
