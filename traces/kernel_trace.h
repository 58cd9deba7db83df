#pragma once
// One device of a time line as a trace of PyTorch's profiler, for tools that take a file per rank
// of a training: Holistic Trace Analysis, Perfetto. Such a tool tells kernels by their names.
// - "distributedInfo": the rank is the device, the world size the number of devices.
// - A span is a row of stream 7 + lane: "kernel" with the action's text as its name for what
//   computes, "kernel" with "ncclDevKernel_SendRecv", "_AllReduce" or "_AllGather" before the text
//   for what communicates, "gpu_memcpy" and "gpu_memset" for MOVE and RESHARD. Spans of the host
//   lane are rows "cpu_op".
// - Each but those has a launch of no duration on the host, told by "correlation": one action
//   ahead, as the one before it in its lane and step starts, else as its step begins.
// - ProfilerStep#N: from the first span of step N to that of the next step here.

#include <string>

#include "traces/timeline.h"

namespace frazil {

// Equal time lines give equal bytes. A device without spans gives a trace without rows, in which
// Holistic Trace Analysis finds nothing to analyse and fails.
std::string to_kernel_trace(const Timeline& timeline, DeviceId device);

}  // namespace frazil
