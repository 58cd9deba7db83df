#include "exec/devices/cuda/gpu_parts.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <stdexcept>

namespace frazil {
namespace {

// Thrown inside this file only; callers get its text as GpuParts::why_not.
class CannotSplit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns an entry of the driver. `version` is the one in which the function came: 12040 is CUDA
// 12.4.
template <class Function>
Function find_entry(const char* name, unsigned version) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess || entry == nullptr) {
    (void)cudaGetLastError();
    throw CannotSplit(std::string("the driver has no ") + name);
  }
  return reinterpret_cast<Function>(entry);
}

void check(CUresult result, const char* name) {
  if (result == CUDA_SUCCESS) return;
  throw CannotSplit(std::string(name) + " gives error " + std::to_string(result));
}

unsigned round_down(unsigned value, unsigned step) {
  return step == 0 ? value : value / step * step;
}

GpuParts split(int gpu, int parts) {
  const auto get_device = find_entry<PFN_cuDeviceGet_v2000>("cuDeviceGet", 2000);
  const auto get_resource =
      find_entry<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", 12040);
  const auto cut =
      find_entry<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", 12040);
  const auto describe =
      find_entry<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", 12040);
  const auto create = find_entry<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", 12040);
  const auto ask =
      find_entry<PFN_cuGreenCtxGetDevResource_v12040>("cuGreenCtxGetDevResource", 12040);

  CUdevice device = 0;
  check(get_device(&device, gpu), "cuDeviceGet");
  CUdevResource whole{};
  check(get_resource(device, &whole, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
  const auto wanted = static_cast<unsigned>(parts);
  // The driver rounds up, so the number asked for must be one that it can cut.
  const unsigned each = round_down(whole.sm.smCount / wanted, whole.sm.smCoscheduledAlignment);
  if (each < whole.sm.minSmPartitionSize || each == 0) {
    throw CannotSplit("its " + std::to_string(whole.sm.smCount) + " SMs make no " +
                      std::to_string(parts) + " parts");
  }
  std::vector<CUdevResource> pieces(wanted);
  CUdevResource rest{};
  unsigned count = wanted;
  check(cut(pieces.data(), &count, &whole, &rest, 0, each), "cuDevSmResourceSplitByCount");
  if (count < wanted) throw CannotSplit("it was cut into " + std::to_string(count) + " parts");

  GpuParts made;
  for (CUdevResource& piece : pieces) {
    CUdevResourceDesc description = nullptr;
    check(describe(&description, &piece, 1), "cuDevResourceGenerateDesc");
    CUgreenCtx context = nullptr;
    check(create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
    CUdevResource granted{};
    check(ask(context, &granted, CU_DEV_RESOURCE_TYPE_SM), "cuGreenCtxGetDevResource");
    made.multiprocessors = static_cast<int>(granted.sm.smCount);
    made.contexts.push_back(context);
  }
  return made;
}

// Lets two streams wait for each other once, by timed events.
cudaError_t try_events(cudaStream_t stream) {
  cudaStream_t other = nullptr;
  cudaEvent_t there = nullptr;
  cudaEvent_t back = nullptr;
  constexpr unsigned kNoFlags = 0;
  cudaError_t error = cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&there, cudaEventDefault);
  if (error == cudaSuccess) error = cudaEventRecord(there, stream);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(other, there, kNoFlags);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&back, cudaEventDefault);
  if (error == cudaSuccess) error = cudaEventRecord(back, other);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(stream, back, kNoFlags);
  if (error == cudaSuccess) error = cudaEventRecord(back, stream);
  if (error == cudaSuccess) error = cudaEventSynchronize(back);
  float milliseconds = 0;
  if (error == cudaSuccess) error = cudaEventElapsedTime(&milliseconds, there, back);
  if (back != nullptr) (void)cudaEventDestroy(back);
  if (there != nullptr) (void)cudaEventDestroy(there);
  if (other != nullptr) (void)cudaStreamDestroy(other);
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

}  // namespace

GpuParts split_gpu(int gpu, int parts) {
  try {
    return split(gpu, parts);
  } catch (const CannotSplit& error) {
    return {.contexts = {}, .multiprocessors = 0, .why_not = error.what()};
  }
}

cudaStream_t make_stream(CUgreenCtx part, std::string& why_not) {
  CUstream stream = nullptr;
  try {
    const auto create =
        find_entry<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", 12050);
    check(create(&stream, part, CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
  } catch (const CannotSplit& error) {
    why_not = error.what();
    return nullptr;
  }
  if (const cudaError_t error = try_events(stream); error != cudaSuccess) {
    why_not = std::string("a part's stream takes no events: ") + cudaGetErrorString(error);
    (void)cudaStreamDestroy(stream);
    return nullptr;
  }
  return stream;
}

}  // namespace frazil
