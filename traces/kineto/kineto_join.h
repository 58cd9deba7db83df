#pragma once
// Joins the threads and devices of a trace: finds the outermost operations of each host thread, the
// ranges they lie in, and the operation that launched each piece of device work. Device work
// belongs to the host call with its "correlation", else to the operation with its "External id".

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "traces/kineto/kineto_ranges.h"
#include "traces/kineto/kineto_trace.h"

namespace frazil {

enum class HostWorkKind : std::uint8_t { kForward, kBackwardNode, kAccumulateGradient };

// An outermost operation, which lies inside no other operation. It is compact, for a trace may hold
// millions.
struct HostWork {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t sequence = -1;  // autograd's number of the node; -1: none
  std::uint32_t name = 0;
  std::uint32_t forward_thread = 0;
  // The innermost range of a layer or update around it, else of a module; -1: none.
  std::int32_t range = -1;
  std::uint16_t thread = 0;
  HostWorkKind kind = HostWorkKind::kForward;

  std::int64_t duration() const { return end - start; }
};

// The bytes that a backward work was handed, if the profiler recorded shapes.
struct WorkInput {
  std::int32_t work = 0;
  std::int64_t bytes = 0;
};

struct DeviceWork {
  std::int64_t duration = 0;
  std::int32_t step = -1;  // step of its launch, or of its own start if the launch is unknown
  std::int32_t work = -1;  // into JoinedTrace::works
  // The innermost layer or update around a launch that lies outside all operations; -1: none.
  std::int32_t range = -1;
  bool is_communication = false;
};

// Memory that was allocated or freed, with what its thread did then.
struct MemoryWork {
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  std::int32_t step = -1;
  std::int32_t work = -1;   // the last work of the thread that had begun; -1: none
  std::int32_t mark = -1;   // the innermost layer or update around it; -1: none
  std::int32_t passes = 0;  // backward nodes begun before, on all threads
  bool is_inside_work = false;
  bool is_on_device = false;
};

struct JoinedTrace {
  std::string file;
  NameTable names;
  std::int64_t events = 0;
  std::vector<std::string> gpus;  // as in KinetoTrace
  KinetoSteps steps;
  std::vector<NestedRange> ranges;  // layers, updates and modules of all threads
  std::deque<HostWork> works;       // thread by thread, by start
  std::deque<WorkInput> inputs;     // ascending by work, each work once
  std::deque<DeviceWork> device;
  std::deque<MemoryWork> memory;  // by time
  // The rows that the first operation with parameters of each step reads; 0: steps differ, or the
  // profiler recorded no shapes.
  std::int64_t rows_read = 0;

  std::int32_t step_of(const HostWork& work) const { return steps.at(work.start); }
};

// Joins one trace. A forward operation in no range of a layer or update, but with such a range
// inside it, counts as lying in the first of these. A layer's range inside a backward node is a
// forward done again, and part of the backward.
JoinedTrace join_trace(KinetoTrace trace);

// Returns a backward node's own name, "AddmmBackward0", without the prefix that the engine puts
// before it.
std::string_view node_name(std::string_view operation);

}  // namespace frazil
