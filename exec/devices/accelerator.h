#pragma once
// What a plug-in for GPUs gives the executor: a table of plain functions, so that the program
// itself links no CUDA library. The plug-in (exec/cuda) exports one C function that returns its
// table; tests have a plug-in of their own. Functions throw std::runtime_error, or what torch
// throws, with one sentence. None waits for a GPU.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace frazil {

// To be raised with every change of what is below.
inline constexpr int kAcceleratorVersion = 1;
inline constexpr const char* kAcceleratorSymbol = "frazil_accelerator";

struct GpuFacts {
  std::string name;
  std::int64_t memory_bytes = 0;
  int multiprocessors = 0;
  std::string driver;  // "CUDA 13.0"
};

// Of torch's caching allocator, in bytes.
struct GpuMemory {
  std::int64_t allocated = 0;
  std::int64_t peak = 0;
};

// A stream of a GPU, as the plug-in knows it.
using StreamHandle = void*;

struct AcceleratorTable {
  int version = kAcceleratorVersion;  // first, so that every version can read it

  // Throws where there is no working driver; 0: a driver without a GPU.
  int (*count_gpus)() = nullptr;
  GpuFacts (*describe)(int gpu) = nullptr;
  GpuMemory (*memory)(int gpu) = nullptr;

  // A stream for share `share` of `shares` disjoint parts of a GPU; of the whole GPU when shares
  // is 1 or it cannot be split. Closed, it may be opened again; tensors may outlive that.
  StreamHandle (*open)(int gpu, int share, int shares) = nullptr;
  void (*close)(StreamHandle stream) = nullptr;
  // "64 SMs", or "a stream without a part of its own: ..." with the reason.
  std::string (*part)(StreamHandle stream) = nullptr;
  at::Device (*place)(StreamHandle stream) = nullptr;

  // From now on the calling thread works on this stream, its backward passes included.
  void (*enter)(StreamHandle stream) = nullptr;
  // Whether the stream has done all that it was given; never waits. Throws the GPU's error.
  bool (*is_idle)(StreamHandle stream) = nullptr;
  // The stream uses a tensor of another one: its memory is not given to others before it is done.
  void (*mark)(StreamHandle stream, const at::Tensor& tensor) = nullptr;
  // As is_idle(), of what a GPU was given by threads that have entered no stream.
  bool (*is_settled)(int gpu) = nullptr;
};

// The type of the exported function.
using AcceleratorFunction = const AcceleratorTable* (*)();

}  // namespace frazil
