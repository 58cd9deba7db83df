#pragma once
// Who did what in a trace: the outermost operations of each host thread, the ranges they lie in,
// and the operation that launched each piece of device work. Device work belongs to the host call
// with its "correlation", else to the operation with its "External id".

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "traces/kineto/kineto_ranges.h"
#include "traces/kineto/kineto_trace.h"

namespace frazil {

enum class HostWorkKind : std::uint8_t { kForward, kBackwardNode, kAccumulateGradient };

// An operation inside no other. Compact, for a trace may hold millions.
struct HostWork {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t sequence = -1;  // of autograd
  std::uint32_t name = 0;
  std::uint32_t forward_thread = 0;
  std::int32_t range = -1;  // innermost layer or update, else innermost module; -1: none
  std::uint16_t thread = 0;
  HostWorkKind kind = HostWorkKind::kForward;

  std::int64_t duration() const { return end - start; }
};

// Bytes of what a backward work was handed, where the profiler recorded shapes.
struct WorkInput {
  std::int32_t work = 0;
  std::int64_t bytes = 0;
};

struct DeviceWork {
  std::int64_t duration = 0;
  std::int32_t step = -1;   // by its launch; by its own start where that is unknown
  std::int32_t work = -1;   // into JoinedTrace::works
  std::int32_t range = -1;  // of a launch outside all operations: innermost layer or update
  bool is_communication = false;
};

struct JoinedTrace {
  std::string file;
  NameTable names;
  std::int64_t events = 0;
  KinetoSteps steps;
  std::vector<NestedRange> ranges;  // layers, updates and modules of all threads
  std::deque<HostWork> works;       // thread by thread, by start
  std::deque<WorkInput> inputs;     // by work, each once
  std::deque<DeviceWork> device;

  std::int32_t step_of(const HostWork& work) const { return steps.at(work.start); }
};

// A layer's range inside an operation lends it to that operation, unless that one is a backward
// node: there the range is a forward done again, and part of the backward.
JoinedTrace join_trace(KinetoTrace trace);

// A backward node's own name: "AddmmBackward0", without what the engine puts before it.
std::string_view node_name(std::string_view operation);

}  // namespace frazil
