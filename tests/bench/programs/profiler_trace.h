#pragma once
// Large traces as PyTorch's profiler writes them: training steps of a stack of layers marked by
// ranges, forwards on one thread and backward nodes on another, operations inside operations.

#include <cstdint>
#include <filesystem>

namespace frazil {

struct ProfilerTrace {
  std::int64_t bytes = 0;   // about so many: whole steps
  bool has_shapes = false;  // sizes and types of what each operation was handed
  // A third of the operations launch a kernel. As the profiler does, calls and then kernels stand
  // behind all operations in the file; the device lags 50 ms behind the host.
  bool has_kernels = false;
};

// Returns the size of the file.
std::int64_t write_profiler_trace(const std::filesystem::path& path, const ProfilerTrace& shape);

}  // namespace frazil
