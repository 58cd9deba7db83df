#include "tests/exec/communication/fake_nccl.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "tests/exec/communication/fake_nccl_communicators.h"
#include "tests/exec/communication/fake_nccl_state.h"
#include "tests/exec/communication/fake_nccl_streams.h"

#ifndef FAKE_NCCL_VERSION
#define FAKE_NCCL_VERSION frazil::kNcclVersion
#endif

namespace frazil::fake {
namespace {

using Fault = FakeNcclFault::Kind;

int library_version() { return 22809; }

bool carries(const at::Tensor& tensor) { return tensor.defined(); }

void group_start() {
  if (open_group().is_open) throw std::logic_error("a group in a group");
  open_group() = {.is_open = true, .operations = {}};
}

// Returns after release() if the call is to be stuck.
void meet_fault(std::unique_lock<std::mutex>& lock, End& end) {
  const FakeNcclFault& fault = state().fault;
  const int group = state().groups_of_gpus[end.gpu]++;
  if (fault.gpu != end.gpu || group != fault.group) return;
  if (fault.kind == Fault::kHang) end.hangs_at = end.issued;
  if (fault.kind == Fault::kError) {
    end.failure = "remote process exited or there was a network error";
  }
  if (fault.kind == Fault::kStuckCall) {
    state().released.wait(lock, [] { return state().is_released; });
  }
}

void group_end() {
  std::unique_lock<std::mutex> lock(state().mutex);
  OpenGroup group = std::exchange(open_group(), {});
  if (!group.is_open) throw std::logic_error("no group is open");
  for (auto& [end, operations] : group.operations) {
    ++state().counts.groups;
    state().counts.widest_group =
        std::max(state().counts.widest_group, static_cast<int>(operations.size()));
    meet_fault(lock, *end);
    end->stream.push_back(std::move(operations));
    ++end->issued;
    end->not_yet = 1;
  }
  advance_streams();
}

double simulate_end() {
  const OpenGroup group = std::exchange(open_group(), {});
  std::size_t bytes = 0;
  for (const auto& [end, operations] : group.operations) {
    for (const Operation& operation : operations) {
      bytes += (operation.from.defined() ? operation.from : operation.to).nbytes();
    }
  }
  return 1e-5 + static_cast<double>(bytes) / 1e10;
}

void put(NcclEnd handle, Operation operation) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  End& end = end_of(handle);
  if (!open_group().is_open) violate("an operation stands in no group");
  if (end.revoked) throw std::runtime_error("invalid usage");
  if (!is_ready(end) || end.finalized) violate("an operation is given to an end that is not ready");
  for (const at::Tensor& tensor : {operation.from, operation.to}) {
    if (tensor.defined() && !tensor.is_contiguous()) violate("a tensor is not contiguous");
  }
  open_group().operations[&end].push_back(std::move(operation));
}

void send(NcclEnd end, const at::Tensor& tensor, int peer) {
  put(end, {.kind = Operation::Kind::kSend, .from = tensor, .to = {}, .peer = peer});
}

void receive(NcclEnd end, const at::Tensor& tensor, int peer) {
  put(end, {.kind = Operation::Kind::kReceive, .from = {}, .to = tensor, .peer = peer});
}

void all_reduce(NcclEnd end, const at::Tensor& tensor) {
  put(end, {.kind = Operation::Kind::kAllReduce, .from = tensor, .to = tensor});
  const std::lock_guard<std::mutex> lock(state().mutex);
  ++state().counts.all_reduces;
}

void reduce_scatter(NcclEnd end, const at::Tensor& all, const at::Tensor& own) {
  put(end, {.kind = Operation::Kind::kReduceScatter, .from = all, .to = own});
}

void all_gather(NcclEnd end, const at::Tensor& own, const at::Tensor& all) {
  put(end, {.kind = Operation::Kind::kAllGather, .from = own, .to = all});
}

void broadcast(NcclEnd end, const at::Tensor& tensor, int root) {
  put(end, {.kind = Operation::Kind::kBroadcast, .from = tensor, .to = tensor, .peer = root});
}

NcclMark add_mark(const Mark& mark) {
  ++state().counts.live_marks;
  return new Mark(mark);
}

NcclMark mark_work(int /*gpu*/) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return add_mark({});
}

NcclMark mark(NcclEnd handle) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  End& end = end_of(handle);
  return add_mark({&end, end.issued});
}

void follow(NcclEnd handle, NcclMark /*mark*/) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  (void)end_of(handle);
}

void follow_here(int /*gpu*/, NcclMark /*mark*/) {}

bool is_done(NcclMark handle) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  advance_streams();
  const Mark& mark = *static_cast<const Mark*>(handle);
  return mark.end == nullptr || !state().ends.contains(mark.end) || mark.end->done >= mark.groups;
}

void forget(NcclMark mark) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  --state().counts.live_marks;
  delete static_cast<Mark*>(mark);
}

}  // namespace

const NcclTable& table() {
  static const NcclTable one{.version = FAKE_NCCL_VERSION,
                             .library_version = library_version,
                             .carries = carries,
                             .make_id = make_id,
                             .init = init,
                             .poll = poll,
                             .split = split,
                             .shrink = shrink,
                             .revoke = revoke,
                             .finalize = finalize,
                             .destroy = destroy,
                             .abort = abort,
                             .group_start = group_start,
                             .group_end = group_end,
                             .simulate_end = simulate_end,
                             .send = send,
                             .receive = receive,
                             .all_reduce = all_reduce,
                             .reduce_scatter = reduce_scatter,
                             .all_gather = all_gather,
                             .broadcast = broadcast,
                             .mark_work = mark_work,
                             .mark = mark,
                             .follow = follow,
                             .join = follow_here,
                             .is_done = is_done,
                             .forget = forget};
  return one;
}

}  // namespace frazil::fake

namespace frazil {

using fake::state;

void reset_fake_nccl(const FakeNcclFault& fault) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  if (!state().ends.empty()) throw std::logic_error("the world before has not ended");
  state().is_released = false;
  state().fault = fault;
  state().counts = {};
  state().violations.clear();
  state().meetings.clear();
  state().splits.clear();
  state().groups_of_gpus.clear();
}

FakeNcclCounts fake_nccl_counts() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  FakeNcclCounts counts = state().counts;
  counts.live_ends = static_cast<int>(state().ends.size());
  return counts;
}

std::vector<std::string> fake_nccl_violations() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().violations;
}

void release_fake_nccl() {
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    state().is_released = true;
  }
  state().released.notify_all();
}

const NcclTable& fake_nccl() { return fake::table(); }

}  // namespace frazil

extern "C" const frazil::NcclTable* frazil_nccl() { return &frazil::fake_nccl(); }
