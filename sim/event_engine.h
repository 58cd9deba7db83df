#pragma once
// The event engine simulates the same task graph as the static engine, with contention. A task
// starts when all its dependencies have ended, their delays have passed, its lane is free, and the
// limits of the options allow it (sim/dispatcher.h). Tasks under way share links and cores
// (sim/sharing.h). At each moment first every task that ends does, then those that may start do,
// and so on while some take no time; only then are rates shared out anew. With default options
// starts and ends are those of the static engine.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/event_graph.h"
#include "sim/noise.h"

namespace frazil {

// Times in ns.
struct TaskTimes {
  std::int64_t start = 0;
  std::int64_t end = 0;
  friend bool operator==(const TaskTimes&, const TaskTimes&) = default;
};

// The result of a run; one object may be reused for several runs.
struct EventTimes {
  std::vector<TaskTimes> of;  // by TaskId
  bool rounded = false;       // some share was too fine a fraction to be kept (sim/flows.h)
};

// Simulates the graph into `times`; `prices[w]` is the time of work w alone. Throws InfeasibleError
// on a cycle, a deadlock or starvation; the sentence names tasks through `name_of` (default: "task
// 17 on device 2"). Overflow past 2^63 ns is a bug of the caller. Requires: a price for every work,
// none negative.
void run_events(const EventGraph& graph, std::span<const Duration> prices, EventTimes& times,
                const Noise& noise = {}, const std::function<std::string(TaskId)>& name_of = {});

// Calls prepare_events and run_events.
EventTimes simulate_events(const TaskGraph& graph, std::span<const Duration> prices,
                           EventOptions options = {},
                           const std::function<std::string(TaskId)>& name_of = {});

// Returns the makespan: the latest end, for some task always starts at 0. Returns 0 without tasks.
Duration latest_end(const EventTimes& times);

}  // namespace frazil
