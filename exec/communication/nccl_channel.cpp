#include "exec/communication/nccl_channel.h"

#include <stdexcept>
#include <utility>

#include "profiles/error.h"

namespace frazil {

NcclChannel::NcclChannel(const NcclTable& table, const NcclId& id, const NcclPlace& place,
                         std::string peers)
    : table_(table), peers_(std::move(peers)) {
  try {
    end_ = table_.init(id, place);
  } catch (const std::exception& error) {
    throw std::runtime_error("connect to " + peers_ + " over NCCL: " + error.what());
  }
}

NcclChannel::~NcclChannel() { abort(); }

bool NcclChannel::is_busy() const {
  return phase_ == Phase::kBeginning || !queued_.empty() || !running_.empty();
}

bool NcclChannel::advance() {
  if (phase_ == Phase::kEnded) return false;
  if (phase_ == Phase::kBeginning) {
    if (ask("connect to " + peers_) == NcclState::kInProgress) return false;
    phase_ = Phase::kOpen;
  }
  bool ended = settle();
  // An end takes no further group before NCCL has taken the one before.
  while (!queued_.empty() && (running_.empty() || running_.back().mark != nullptr)) {
    const std::shared_ptr<NcclWork> next = std::move(queued_.front());
    queued_.pop_front();
    running_.push_back({next, {nullptr, table_.forget}});
    issue(next);
    ended = settle() || ended;
  }
  return ended;
}

void NcclChannel::issue(const std::shared_ptr<NcclWork>& work) {
  try {
    if (work->after != nullptr) table_.follow(end_, work->after.get());
    table_.group_start();
    work->issue(end_, work->tensors);
    table_.group_end();
  } catch (const std::exception& error) {
    throw std::runtime_error(work->what + " over NCCL: " + error.what());
  }
  work->after.reset();
  work->state = NcclWork::State::kIssued;
}

// Notes which groups NCCL has taken and which are done, in their order.
bool NcclChannel::settle() {
  if (running_.empty()) {
    (void)ask("reach " + peers_);
    return false;
  }
  Running& last = running_.back();
  if (ask(running_.front().work->what) == NcclState::kReady && last.mark == nullptr) {
    last.mark.reset(table_.mark(end_));
  }
  bool ended = false;
  while (!running_.empty() && running_.front().mark != nullptr) {
    Running& first = running_.front();
    try {
      if (!table_.is_done(first.mark.get())) break;
    } catch (const std::exception& error) {
      throw std::runtime_error(first.work->what + " over NCCL: " + error.what());
    }
    first.work->tensors.clear();
    first.work->state = NcclWork::State::kDone;
    running_.pop_front();
    ended = true;
  }
  return ended;
}

NcclState NcclChannel::ask(const std::string& what) {
  const NcclAnswer answer = table_.poll(end_);
  if (answer.state == NcclState::kFailed) {
    throw std::runtime_error(what + " over NCCL: " + answer.why);
  }
  return answer.state;
}

void NcclChannel::abort() {
  if (phase_ == Phase::kEnded) return;
  phase_ = Phase::kEnded;
  try {
    if (end_ != nullptr) table_.abort(end_);
  } catch (const std::exception&) {
    // The communicator is given up: what NCCL says of it now helps nobody.
  }
  for (Running& one : running_) queued_.push_back(std::move(one.work));
  running_.clear();
  for (const std::shared_ptr<NcclWork>& work : queued_) {
    work->after.reset();
    work->tensors.clear();
    work->state = NcclWork::State::kFailed;
  }
  queued_.clear();
}

bool NcclChannel::close() {
  ENSURE(!is_busy(), "a channel closes when it has nothing to do");
  if (phase_ == Phase::kEnded) return true;
  if (phase_ == Phase::kOpen) {
    table_.finalize(end_);
    phase_ = Phase::kClosing;
  }
  if (ask("leave " + peers_) == NcclState::kInProgress) return false;
  phase_ = Phase::kEnded;
  table_.destroy(std::exchange(end_, nullptr));
  return true;
}

}  // namespace frazil
