// The plug-in for NCCL: implements exec/communication/nccl_table.h. Communicators are
// non-blocking, so that one thread can serve many of them and abort any.

#include "exec/communication/nccl_table.h"

#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "exec/communication/nccl/nccl_calls.h"

namespace frazil {
namespace {

struct End {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int gpu = 0;
  End* parent = nullptr;  // what it is split or shrunk from, until it is ready
};

End& end_of(NcclEnd end) { return *static_cast<End*>(end); }

cudaEvent_t event_of(NcclMark mark) { return static_cast<cudaEvent_t>(mark); }

cudaStream_t current_stream(int gpu) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(gpu)).stream();
}

std::unique_ptr<End> make_end(int gpu) {
  auto end = std::make_unique<End>();
  end->gpu = gpu;
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  check(cudaStreamCreateWithPriority(&end->stream, cudaStreamNonBlocking, greatest));
  return end;
}

void free_end(End* end) {
  const OnGpu on(end->gpu);
  (void)cudaStreamDestroy(end->stream);
  delete end;
}

ncclConfig_t make_config(const NcclPlace& place) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = place.blocks ? 1 : 0;
  if (place.most_blocks > 0) config.maxCTAs = place.most_blocks;
  return config;
}

int library_version() {
  int version = 0;
  check(ncclGetVersion(&version));
  return version;
}

bool carries(const at::Tensor& tensor) { return tensor.defined() && tensor.is_cuda(); }

NcclId make_id() {
  ncclUniqueId made;
  check(ncclGetUniqueId(&made));
  NcclId id;
  static_assert(sizeof(made.internal) == sizeof(id.bytes));
  std::copy(std::begin(made.internal), std::end(made.internal), id.bytes.begin());
  return id;
}

NcclEnd init(const NcclId& id, const NcclPlace& place) {
  const OnGpu on(place.gpu);
  ncclUniqueId made;
  std::copy(id.bytes.begin(), id.bytes.end(), std::begin(made.internal));
  ncclConfig_t config = make_config(place);
  std::unique_ptr<End> end = make_end(place.gpu);
  check(ncclCommInitRankConfig(&end->comm, place.ranks, made, place.rank, &config));
  return end.release();
}

NcclAnswer poll(NcclEnd handle) {
  End& end = end_of(handle);
  // A child has no communicator yet while its parent is still busy making it.
  ncclComm_t const asked = end.comm == nullptr && end.parent ? end.parent->comm : end.comm;
  if (asked == nullptr) return {NcclState::kInProgress, {}};
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(asked, &state), asked);
  if (state == ncclInProgress) return {NcclState::kInProgress, {}};
  if (state != ncclSuccess) return {NcclState::kFailed, sentence_of(state, asked)};
  if (asked != end.comm) return {NcclState::kInProgress, {}};
  end.parent = nullptr;
  return {NcclState::kReady, {}};
}

NcclEnd split(NcclEnd handle, int color, int key) {
  End& parent = end_of(handle);
  const OnGpu on(parent.gpu);
  std::unique_ptr<End> end = make_end(parent.gpu);
  end->parent = &parent;
  check(ncclCommSplit(parent.comm, color, key, &end->comm, nullptr), parent.comm);
  return end.release();
}

NcclEnd shrink(NcclEnd handle, const std::vector<int>& excluded, bool aborts) {
  End& parent = end_of(handle);
  const OnGpu on(parent.gpu);
  std::unique_ptr<End> end = make_end(parent.gpu);
  end->parent = &parent;
  std::vector<int> ranks = excluded;
  check(ncclCommShrink(parent.comm, ranks.data(), static_cast<int>(ranks.size()), &end->comm,
                       nullptr, aborts ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT),
        parent.comm);
  return end.release();
}

void revoke(NcclEnd end) {
  const OnGpu on(end_of(end).gpu);
  check(ncclCommRevoke(end_of(end).comm, NCCL_REVOKE_DEFAULT), end_of(end).comm);
}

void finalize(NcclEnd end) {
  const OnGpu on(end_of(end).gpu);
  check(ncclCommFinalize(end_of(end).comm), end_of(end).comm);
}

void destroy(NcclEnd end) {
  const OnGpu on(end_of(end).gpu);
  const ncclResult_t result = ncclCommDestroy(end_of(end).comm);
  free_end(&end_of(end));
  check(result);
}

void abort(NcclEnd end) {
  const OnGpu on(end_of(end).gpu);
  const ncclResult_t result =
      end_of(end).comm == nullptr ? ncclSuccess : ncclCommAbort(end_of(end).comm);
  free_end(&end_of(end));
  check(result);
}

void group_start() { check(ncclGroupStart()); }

void group_end() { check(ncclGroupEnd()); }

double simulate_end() {
  ncclSimInfo_t simulated = NCCL_SIM_INFO_INITIALIZER;
  check(ncclGroupSimulateEnd(&simulated));
  constexpr double kMicrosecond = 1e-6;
  return static_cast<double>(simulated.estimatedTime) * kMicrosecond;
}

// Messages are bytes, whatever their type.
void send(NcclEnd end, const at::Tensor& tensor, int peer) {
  check(ncclSend(tensor.const_data_ptr(), tensor.nbytes(), ncclInt8, peer, end_of(end).comm,
                 end_of(end).stream));
}

void receive(NcclEnd end, const at::Tensor& tensor, int peer) {
  check(ncclRecv(tensor.mutable_data_ptr(), tensor.nbytes(), ncclInt8, peer, end_of(end).comm,
                 end_of(end).stream));
}

std::size_t count(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

void all_reduce(NcclEnd end, const at::Tensor& tensor) {
  check(ncclAllReduce(tensor.const_data_ptr(), tensor.mutable_data_ptr(), count(tensor),
                      type_of(tensor), ncclSum, end_of(end).comm, end_of(end).stream));
}

void reduce_scatter(NcclEnd end, const at::Tensor& all, const at::Tensor& own) {
  check(ncclReduceScatter(all.const_data_ptr(), own.mutable_data_ptr(), count(own), type_of(own),
                          ncclSum, end_of(end).comm, end_of(end).stream));
}

void all_gather(NcclEnd end, const at::Tensor& own, const at::Tensor& all) {
  check(ncclAllGather(own.const_data_ptr(), all.mutable_data_ptr(), own.nbytes(), ncclInt8,
                      end_of(end).comm, end_of(end).stream));
}

void broadcast(NcclEnd end, const at::Tensor& tensor, int root) {
  check(ncclBroadcast(tensor.const_data_ptr(), tensor.mutable_data_ptr(), tensor.nbytes(), ncclInt8,
                      root, end_of(end).comm, end_of(end).stream));
}

NcclMark record(int gpu, cudaStream_t stream) {
  const OnGpu on(gpu);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  check(cudaEventRecord(event, stream));
  return event;
}

NcclMark mark_work(int gpu) { return record(gpu, current_stream(gpu)); }

NcclMark mark(NcclEnd end) { return record(end_of(end).gpu, end_of(end).stream); }

void follow(NcclEnd end, NcclMark mark) {
  check(cudaStreamWaitEvent(end_of(end).stream, event_of(mark), 0));
}

void join(int gpu, NcclMark mark) {
  check(cudaStreamWaitEvent(current_stream(gpu), event_of(mark), 0));
}

bool is_done(NcclMark mark) {
  const cudaError_t state = cudaEventQuery(event_of(mark));
  if (state != cudaErrorNotReady) check(state);
  (void)cudaGetLastError();  // "not ready" is no error, but CUDA keeps it as one
  return state == cudaSuccess;
}

void forget(NcclMark mark) { (void)cudaEventDestroy(event_of(mark)); }

}  // namespace
}  // namespace frazil

extern "C" const frazil::NcclTable* frazil_nccl() {
  static const frazil::NcclTable table{.version = frazil::kNcclVersion,
                                       .library_version = frazil::library_version,
                                       .carries = frazil::carries,
                                       .make_id = frazil::make_id,
                                       .init = frazil::init,
                                       .poll = frazil::poll,
                                       .split = frazil::split,
                                       .shrink = frazil::shrink,
                                       .revoke = frazil::revoke,
                                       .finalize = frazil::finalize,
                                       .destroy = frazil::destroy,
                                       .abort = frazil::abort,
                                       .group_start = frazil::group_start,
                                       .group_end = frazil::group_end,
                                       .simulate_end = frazil::simulate_end,
                                       .send = frazil::send,
                                       .receive = frazil::receive,
                                       .all_reduce = frazil::all_reduce,
                                       .reduce_scatter = frazil::reduce_scatter,
                                       .all_gather = frazil::all_gather,
                                       .broadcast = frazil::broadcast,
                                       .mark_work = frazil::mark_work,
                                       .mark = frazil::mark,
                                       .follow = frazil::follow,
                                       .join = frazil::join,
                                       .is_done = frazil::is_done,
                                       .forget = frazil::forget};
  return &table;
}
