#pragma once
// Writes large traces as PyTorch's profiler does: training steps of a stack of layers marked by
// ranges, forwards on one thread and backward nodes on another, operations inside operations.

#include <cstdint>
#include <filesystem>

namespace frazil {

struct ProfilerTrace {
  std::int64_t bytes = 0;   // approximate size; the trace holds whole steps
  bool has_shapes = false;  // record sizes and types of each operation's inputs
  // Lets a third of the operations launch a kernel. As in the profiler's files, launches and then
  // kernels follow all operations; the device lags 50 ms behind the host.
  bool has_kernels = false;
};

// Writes a trace and returns the size of its file in bytes.
std::int64_t write_profiler_trace(const std::filesystem::path& path, const ProfilerTrace& shape);

}  // namespace frazil
