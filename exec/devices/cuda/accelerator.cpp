// The plug-in for GPUs under CUDA: implements exec/devices/accelerator.h through libtorch's own
// CUDA streams and caching allocators.

#include "exec/devices/accelerator.h"

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "exec/devices/cuda/event_pool.h"
#include "exec/devices/cuda/gpu_copies.h"
#include "exec/devices/cuda/stream_pool.h"

namespace frazil {
namespace {

using c10::cuda::CUDACachingAllocator::getDeviceStats;

c10::DeviceIndex index_of(int gpu) { return static_cast<c10::DeviceIndex>(gpu); }

GpuStream& stream_of(StreamHandle handle) { return *static_cast<GpuStream*>(handle); }

c10::cuda::CUDAStream torch_stream_of(StreamHandle handle) {
  const GpuStream& own = stream_of(handle);
  return c10::cuda::getStreamFromExternal(own.stream, index_of(own.gpu));
}

StreamPool& pool() {
  static StreamPool streams;
  return streams;
}

EventPool& events() {
  static EventPool pool;
  return pool;
}

[[noreturn]] void fail(cudaError_t error) {
  (void)cudaGetLastError();
  throw std::runtime_error(cudaGetErrorString(error));
}

// Takes the answer of a query.
bool is_done(cudaError_t state) {
  if (state == cudaSuccess) return true;
  if (state != cudaErrorNotReady) fail(state);
  (void)cudaGetLastError();  // "not ready" is no error, but CUDA keeps it as one
  return false;
}

bool has_done(cudaStream_t stream) { return is_done(cudaStreamQuery(stream)); }

GpuEvent& event_of(EventHandle handle) { return *static_cast<GpuEvent*>(handle); }

int count_gpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice) {
    (void)cudaGetLastError();
    return 0;
  }
  if (error != cudaSuccess) fail(error);
  return count;
}

GpuFacts describe(int gpu) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, gpu); error != cudaSuccess) {
    fail(error);
  }
  int driver = 0;
  if (const cudaError_t error = cudaDriverGetVersion(&driver); error != cudaSuccess) fail(error);
  return {
      .name = properties.name,
      .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
      .multiprocessors = properties.multiProcessorCount,
      .driver = "CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10)};
}

GpuMemory memory(int gpu) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const auto stats = getDeviceStats(index_of(gpu));
  constexpr std::size_t kAll = 0;  // all pools together
  return {.allocated = stats.allocated_bytes[kAll].current,
          .peak = stats.allocated_bytes[kAll].peak};
}

StreamHandle open(int gpu, int share, int shares) {
  // Torch looks for its CUDA part once. If it has done so before that part was there, it never
  // looks again.
  if (!at::globalContext().hasCUDA()) {
    throw std::logic_error(
        "torch has looked for CUDA before the plug-in was opened; open it before the first step");
  }
  at::globalContext().lazyInitDevice(at::kCUDA);
  return pool().open(gpu, share, shares);
}

void close(StreamHandle handle) { pool().close(&stream_of(handle)); }

std::string part(StreamHandle handle) { return stream_of(handle).part; }

at::Device place(StreamHandle handle) { return torch_stream_of(handle).device(); }

// Makes backward passes run in the calling thread; otherwise one thread of torch's own would launch
// those of all streams of a GPU, one after another.
void enter(StreamHandle handle) {
  c10::cuda::set_device(index_of(stream_of(handle).gpu));
  c10::cuda::setCurrentCUDAStream(torch_stream_of(handle));
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

bool is_idle(StreamHandle handle) { return has_done(stream_of(handle).stream); }

void mark(StreamHandle handle, const at::Tensor& tensor) {
  c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(),
                                                torch_stream_of(handle));
}

bool is_settled(int gpu) {
  const c10::cuda::CUDAGuard guard(index_of(gpu));
  return has_done(c10::cuda::getDefaultCUDAStream(index_of(gpu)).stream());
}

EventHandle record(StreamHandle handle, bool is_timed) {
  const GpuStream& own = stream_of(handle);
  GpuEvent* const event = events().take(own.gpu, is_timed);
  if (const cudaError_t error = cudaEventRecord(event->event, own.stream); error != cudaSuccess) {
    events().give_back(event);
    fail(error);
  }
  return event;
}

void await(StreamHandle handle, EventHandle event) {
  constexpr unsigned kNoFlags = 0;
  const cudaError_t error =
      cudaStreamWaitEvent(stream_of(handle).stream, event_of(event).event, kNoFlags);
  if (error != cudaSuccess) fail(error);
}

bool has_passed(EventHandle event) { return is_done(cudaEventQuery(event_of(event).event)); }

std::int64_t time_between(EventHandle first, EventHandle second) {
  constexpr double kNanosecondsPerMillisecond = 1e6;
  float milliseconds = 0;
  const cudaError_t error =
      cudaEventElapsedTime(&milliseconds, event_of(first).event, event_of(second).event);
  if (error != cudaSuccess) fail(error);
  return std::llround(static_cast<double>(milliseconds) * kNanosecondsPerMillisecond);
}

void drop(EventHandle event) { events().give_back(&event_of(event)); }

at::Tensor upload(StreamHandle handle, const at::Tensor& tensor) {
  return copy_to_gpu(tensor, stream_of(handle));
}

at::Tensor download(StreamHandle handle, const at::Tensor& tensor) {
  return copy_to_host(tensor, stream_of(handle));
}

at::Tensor fetch(StreamHandle handle, const at::Tensor& tensor) {
  return copy_between_gpus(tensor, stream_of(handle));
}

void begin_range(const char* text) { nvtxRangePushA(text); }

void end_range() { nvtxRangePop(); }

}  // namespace
}  // namespace frazil

extern "C" const frazil::AcceleratorTable* frazil_accelerator() {
  // This is set before the first context is made: with the default of 8, streams of more devices
  // would wait for each other.
  constexpr int kKeepExisting = 0;
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeepExisting);
  static const frazil::AcceleratorTable table{.version = frazil::kAcceleratorVersion,
                                              .count_gpus = frazil::count_gpus,
                                              .describe = frazil::describe,
                                              .memory = frazil::memory,
                                              .open = frazil::open,
                                              .close = frazil::close,
                                              .part = frazil::part,
                                              .place = frazil::place,
                                              .enter = frazil::enter,
                                              .is_idle = frazil::is_idle,
                                              .mark = frazil::mark,
                                              .is_settled = frazil::is_settled,
                                              .record = frazil::record,
                                              .await = frazil::await,
                                              .has_passed = frazil::has_passed,
                                              .time_between = frazil::time_between,
                                              .drop = frazil::drop,
                                              .upload = frazil::upload,
                                              .download = frazil::download,
                                              .fetch = frazil::fetch,
                                              .begin_range = frazil::begin_range,
                                              .end_range = frazil::end_range};
  return &table;
}
