#include "exec/control/control_member.h"

#include <utility>

namespace frazil {
namespace {

constexpr int kLeader = 0;

}  // namespace

ControlMember::ControlMember(Descriptor leader, std::function<void(const std::string&)> abort)
    : abort_(std::move(abort)),
      round_(
          [this](Step step, std::vector<std::string> notes) {
            (void)watch_.send(kLeader, ReadyMessage{step, std::move(notes)});
          },
          [this](const std::function<bool()>& holds) { watch_.look_until(holds); }),
      watch_({.on_message = [this](int, ControlMessage message) { hear(std::move(message)); },
              .on_end = [this](int, const std::string& why, Duration) { lose(why); },
              .on_silence = {}}) {
  watch_.add(kLeader, std::move(leader));
}

ControlMember::~ControlMember() = default;

std::optional<OrderMessage> ControlMember::next() {
  const auto is_told = [this] { return !orders_.empty() || stopped_ || lost_; };
  if (round_.spins()) {
    watch_.look_until([&] {
      const std::lock_guard<std::mutex> lock(mutex_);
      return is_told();
    });
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, is_told);
  if (stopped_) return std::nullopt;
  if (lost_) throw PeerLost(*lost_);
  OrderMessage order = std::move(orders_.front());
  orders_.pop_front();
  return order;
}

std::optional<StopMessage> ControlMember::stopped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopped_;
}

std::optional<std::string> ControlMember::cause() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cause_;
}

void ControlMember::renew() {
  round_.renew();
  const std::lock_guard<std::mutex> lock(mutex_);
  cause_.reset();
}

void ControlMember::answer(std::uint64_t number, std::string result) {
  (void)watch_.send(kLeader, AnswerMessage{number, std::move(result)});
}

void ControlMember::fail(const FailureMessage& failure) { (void)watch_.send(kLeader, failure); }

void ControlMember::hear(ControlMessage message) {
  if (auto* const order = std::get_if<OrderMessage>(&message)) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      orders_.push_back(std::move(*order));
    }
    changed_.notify_all();
  } else if (const auto* const commit = std::get_if<CommitMessage>(&message)) {
    round_.commit(commit->step);
  } else if (const auto* const abort = std::get_if<AbortMessage>(&message)) {
    end_job(abort->sentence);
  } else if (auto* const stop = std::get_if<StopMessage>(&message)) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = std::move(*stop);
    }
    changed_.notify_all();
  }
}

void ControlMember::end_job(const std::string& sentence) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cause_ = sentence;
  }
  round_.undo(sentence);
  abort_(sentence);
}

// A leader that has dismissed this member is no loss. Else the job ends before anybody is told, so
// that whoever hears of it may let go of what the job used.
void ControlMember::lose(const std::string& why) {
  if (stopped()) return;
  const std::string sentence = "the leader of the run is lost: its process " + why;
  end_job(sentence);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    lost_ = sentence;
  }
  changed_.notify_all();
}

}  // namespace frazil
