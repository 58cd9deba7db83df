#pragma once
// What answers about plans say of processes: which devices share one, which links are of which
// class, what a commit round takes, and which plans have none. Nothing is said of a cluster without
// classes of links whose devices lie in one process.

#include <span>
#include <string>

#include "planner/plan/plan.h"
#include "profiles/cluster.h"

namespace frazil {

// Returns a line for each process ("processes    0 on host0: a, b") and for each class of links
// ("links        2 of 12 in a process: 0.001 ms, 10 GB/s").
std::string list_processes(const Cluster& cluster);

// Returns a line on the commit round if some plan has one, then notes: that its time is a default,
// if it is, and that losing a process ends a run of a plan over processes without commit round.
std::string list_commit_rounds(std::span<const Plan* const> plans, const Cluster& cluster);

// Returns a JSON object, to be made part of a larger answer: `processes`, a list of `host`,
// `devices` and for a named one `process`; `links`, by class `pairs`, how many are `listed`, and
// `latency_ns` and `bandwidth_bytes_per_second` of the others. It is empty where list_processes()
// says nothing.
std::string processes_json(const Cluster& cluster);

// Returns a JSON object, to be made part of what is said of one plan: `commit_round_ns`,
// `commit_round_is_default`, and for a plan over processes without round
// `lost_process_ends_run`, each where it applies.
std::string commit_round_json(const Plan& plan, const Cluster& cluster);

// Returns the JSON object `answer` with what commit_round_json() says of these plans, as a line; as
// it is where that says nothing.
std::string with_commit_rounds(std::string answer, std::span<const Plan* const> plans,
                               const Cluster& cluster);

}  // namespace frazil
