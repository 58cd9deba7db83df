#pragma once
// clang-format off
// Writes one device of a time line as a trace of PyTorch's profiler, for tools that take a file per
// rank of a training (Holistic Trace Analysis, Perfetto) and tell kernels by their names.
// - "distributedInfo": the rank is the device, the world size the number of devices.
// - A span is a row of stream 7 + lane. It is a "kernel" with the action's text as its name if it
//   computes, a "kernel" with "ncclDevKernel_SendRecv", "_AllReduce" or "_AllGather" before the
//   text if it communicates, "gpu_memcpy" for MOVE and "gpu_memset" for RESHARD. Spans of the host
//   lane are rows "cpu_op".
// - Each row but "cpu_op" has a launch of no duration on the host, tied to it by "correlation". The
//   launch lies one action ahead: at the start of the action before it in its lane and step, or at
//   the start of the step for the first action.
// - ProfilerStep#N lasts from the first span of step N on this device to that of the next step.
// clang-format on

#include <string>

#include "traces/timeline.h"

namespace frazil {

// Returns the JSON text; equal time lines give equal bytes. A device without spans gives a trace
// without rows, in which Holistic Trace Analysis finds nothing to analyse and fails.
std::string to_kernel_trace(const Timeline& timeline, DeviceId device);

}  // namespace frazil
