#include "tests/gpu/nccl_pair.h"

#include <thread>

namespace frazil {
namespace {

constexpr auto kLimit = std::chrono::seconds(12);

}  // namespace

Milliseconds since_start(std::chrono::steady_clock::time_point start) {
  return std::chrono::steady_clock::now() - start;
}

NcclEnd NcclPair::begin() const {
  NcclId id;
  if (rank_ == 0) {
    id = table_.make_id();
    socket_.put(id);
  } else {
    id = socket_.get<NcclId>();
  }
  return table_.init(id, {.gpu = 0, .ranks = 2, .rank = rank_, .most_blocks = 2});
}

NcclEnd NcclPair::begin_alone() const {
  return table_.init(table_.make_id(), {.gpu = 0, .ranks = 1, .rank = 0, .most_blocks = 2});
}

void NcclPair::wait_ready(NcclEnd end, bool heeds_peer) const {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const NcclAnswer answer = table_.poll(end);
    if (answer.state == NcclState::kReady) return;
    if (answer.state == NcclState::kFailed) throw std::runtime_error(answer.why);
    if (heeds_peer && socket_.is_gone()) throw PeerGone();
    if (since_start(start) > kLimit) throw std::runtime_error("NCCL was not ready within 12 s");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

NcclEnd NcclPair::open() const {
  const NcclEnd end = begin();
  wait_ready(end);
  return end;
}

Milliseconds NcclPair::run(NcclEnd end, const std::function<void()>& operations,
                           bool heeds_peer) const {
  const auto start = std::chrono::steady_clock::now();
  // What the tensors were filled with comes first.
  const NcclMark before = table_.mark_work(0);
  table_.follow(end, before);
  table_.forget(before);
  table_.group_start();
  operations();
  table_.group_end();
  wait_ready(end, heeds_peer);
  const NcclMark mark = table_.mark(end);
  const auto is_done = [&] {
    if (table_.poll(end).state == NcclState::kFailed)
      throw std::runtime_error(table_.poll(end).why);
    return table_.is_done(mark);
  };
  while (!is_done()) {
    if (heeds_peer && socket_.is_gone()) throw PeerGone();
    if (since_start(start) > kLimit) throw std::runtime_error("a group was not done within 12 s");
    std::this_thread::yield();
  }
  table_.forget(mark);
  return since_start(start);
}

void NcclPair::close(NcclEnd end) const {
  table_.finalize(end);
  wait_ready(end, false);
  table_.destroy(end);
}

}  // namespace frazil
