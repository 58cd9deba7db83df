#pragma once
// A plug-in for GPUs gives the executor a table of plain functions, so that the program itself
// links no CUDA library. The plug-in (exec/devices/cuda) exports one C function that returns its
// table; tests have a plug-in of their own. Functions throw std::runtime_error, or what torch
// throws, with one sentence. No function waits for a GPU.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace frazil {

// Must be raised with every change of what is below.
inline constexpr int kAcceleratorVersion = 2;
inline constexpr const char* kAcceleratorSymbol = "frazil_accelerator";

struct GpuFacts {
  std::string name;
  std::int64_t memory_bytes = 0;
  int multiprocessors = 0;
  std::string driver;  // "CUDA 13.0"
};

// Use of torch's caching allocator, in bytes.
struct GpuMemory {
  std::int64_t allocated = 0;
  std::int64_t peak = 0;
};

// A stream of a GPU, as the plug-in knows it.
using StreamHandle = void*;
// A point in the work of a stream: all that the stream was given before record().
using EventHandle = void*;

struct AcceleratorTable {
  int version = kAcceleratorVersion;  // first, so that every version can read it

  // Returns the number of GPUs; 0: a driver without a GPU. Throws if there is no working driver.
  int (*count_gpus)() = nullptr;
  GpuFacts (*describe)(int gpu) = nullptr;
  GpuMemory (*memory)(int gpu) = nullptr;

  // Opens a stream for share `share` of `shares` disjoint parts of a GPU, or of the whole GPU if
  // shares is 1 or the GPU cannot be split. A closed stream may be opened again; tensors may
  // outlive it. Streams that are open for the same share share its part of the GPU.
  StreamHandle (*open)(int gpu, int share, int shares) = nullptr;
  void (*close)(StreamHandle stream) = nullptr;
  // Returns the part of the GPU that the stream computes on: "64 SMs each", "all of it", or "no
  // parts of their own: ..." with the reason.
  std::string (*part)(StreamHandle stream) = nullptr;
  at::Device (*place)(StreamHandle stream) = nullptr;

  // The calling thread works on this stream from here on, its backward passes included.
  void (*enter)(StreamHandle stream) = nullptr;
  // Returns true if the stream has done all that it was given; never waits. Throws the GPU's error.
  bool (*is_idle)(StreamHandle stream) = nullptr;
  // Tells the allocator that the stream uses a tensor of another stream: the tensor's memory is not
  // given to others before this stream is done with it.
  void (*mark)(StreamHandle stream, const at::Tensor& tensor) = nullptr;
  // Returns true if a GPU has done what it was given by threads that have entered no stream;
  // otherwise as is_idle().
  bool (*is_settled)(int gpu) = nullptr;

  // Events order the streams of all GPUs of a process. Any thread may call these.
  // Records an event; only a timed one may be asked for times.
  EventHandle (*record)(StreamHandle stream, bool is_timed) = nullptr;
  // What the stream is given from here on begins after the event.
  void (*await)(StreamHandle stream, EventHandle event) = nullptr;
  // Returns true if the stream has come to the event; never waits. Throws the GPU's error.
  bool (*has_passed)(EventHandle event) = nullptr;
  // Returns the time between two timed events of one GPU, in ns. Requires: both have passed.
  std::int64_t (*time_between)(EventHandle first, EventHandle second) = nullptr;
  // Gives the event back. What awaits it goes on awaiting it.
  void (*drop)(EventHandle event) = nullptr;

  // Copy a tensor in the order of a stream, and return at once. A copy belongs to the stream.
  // From the host to the GPU, through memory that the system does not move (pinned). The host may
  // write to `tensor` afterwards.
  at::Tensor (*upload)(StreamHandle stream, const at::Tensor& tensor) = nullptr;
  // From the GPU to such memory of the host, which may be read once the stream has come there.
  at::Tensor (*download)(StreamHandle stream, const at::Tensor& tensor) = nullptr;
  // From another GPU. Requires: the stream awaits what the tensor is made by.
  at::Tensor (*fetch)(StreamHandle stream, const at::Tensor& tensor) = nullptr;

  // Name what the calling thread gives to GPUs between the two calls, for profilers. Ranges nest.
  void (*begin_range)(const char* text) = nullptr;
  void (*end_range)() = nullptr;
};

// The type of the exported function.
using AcceleratorFunction = const AcceleratorTable* (*)();

}  // namespace frazil
