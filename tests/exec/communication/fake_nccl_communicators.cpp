#include "tests/exec/communication/fake_nccl_communicators.h"

#include <algorithm>
#include <cstring>

#include "tests/exec/communication/fake_nccl_state.h"
#include "tests/exec/communication/fake_nccl_streams.h"

namespace frazil::fake {
namespace {

using Fault = FakeNcclFault::Kind;

NcclEnd divide(End& parent, int color, int key, std::size_t ranks) {
  End* const child = add_end(parent.gpu);
  std::vector<SplitCall>& calls =
      state().splits[{parent.communicator.get(), parent.splits++, ranks}];
  calls.push_back({child, color, {key, parent.rank}});
  if (calls.size() < ranks) return child;
  std::sort(calls.begin(), calls.end(), [](const SplitCall& a, const SplitCall& b) {
    return std::pair(a.color, a.key) < std::pair(b.color, b.key);
  });
  for (auto first = calls.begin(); first != calls.end();) {
    const auto last = std::find_if(
        first, calls.end(), [&](const SplitCall& call) { return call.color != first->color; });
    const auto made = std::make_shared<Meeting>();
    made->ends.resize(static_cast<std::size_t>(last - first));
    for (int rank = 0; first != last; ++first, ++rank) join(*first->child, made, rank);
  }
  return child;
}

}  // namespace

NcclId make_id() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  NcclId id;
  const std::int64_t number = ++state().ids;
  std::memcpy(id.bytes.data(), &number, sizeof(number));
  return id;
}

NcclEnd init(const NcclId& id, const NcclPlace& place) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  const FakeNcclFault& fault = state().fault;
  End* const end = add_end(place.gpu);
  if (fault.kind == Fault::kNeverReady && fault.gpu == place.gpu) return end;
  std::shared_ptr<Meeting>& meeting = state().meetings[id.bytes];
  if (!meeting) {
    meeting = std::make_shared<Meeting>();
    meeting->ends.resize(static_cast<std::size_t>(place.ranks));
  }
  const bool is_wrong = fault.kind == Fault::kWrongRank && fault.gpu == place.gpu;
  if (meeting->ends.size() != static_cast<std::size_t>(place.ranks)) {
    end->failure = "invalid argument (the ranks disagree how many they are)";
  } else {
    join(*end, meeting, is_wrong ? 0 : place.rank);
  }
  return end;
}

NcclAnswer poll(NcclEnd handle) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  End& end = end_of(handle);
  advance_streams();
  if (!end.failure.empty()) return {NcclState::kFailed, end.failure};
  if (end.not_yet > 0) {
    --end.not_yet;
    return {NcclState::kInProgress, {}};
  }
  if (end.finalized) {
    return {end.stream.empty() ? NcclState::kReady : NcclState::kInProgress, {}};
  }
  return {is_ready(end) ? NcclState::kReady : NcclState::kInProgress, {}};
}

NcclEnd split(NcclEnd handle, int color, int key) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  End& parent = end_of(handle);
  if (!parent.stream.empty()) violate("a communicator is split with operations under way");
  return divide(parent, color, key, parent.communicator->ends.size());
}

NcclEnd shrink(NcclEnd handle, const std::vector<int>& excluded, bool aborts) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  End& parent = end_of(handle);
  if (!parent.stream.empty() && !aborts)
    violate("a communicator shrinks with operations under way");
  if (aborts) parent.stream.clear(), parent.done = parent.issued;
  return divide(parent, 0, 0, parent.communicator->ends.size() - excluded.size());
}

void revoke(NcclEnd handle) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  End& end = end_of(handle);
  end.revoked = true;
  end.stream.clear();
  end.done = end.issued;
  end.not_yet = 1;
}

void finalize(NcclEnd handle) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  End& end = end_of(handle);
  if (end.revoked || !is_ready(end)) violate("an end is finalized that is not ready");
  end.finalized = true;
  end.not_yet = 1;
}

void destroy(NcclEnd handle) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  End& end = end_of(handle);
  if (!end.finalized && !end.revoked) violate("an end is destroyed that was not finalized");
  if (!end.stream.empty()) violate("an end is destroyed with operations under way");
  ++state().counts.destroyed;
  remove_end(end);
}

void abort(NcclEnd handle) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  ++state().counts.aborted;
  remove_end(end_of(handle));
}

}  // namespace frazil::fake
