#include "exec/links/joining/open_door.h"

#include <sys/eventfd.h>

#include <utility>

#include "exec/devices/start_thread.h"
#include "exec/links/joining/peer_calls.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);

}  // namespace

OpenDoor::OpenDoor(JoinedWorld& world, std::function<void(const std::string&)> tell)
    : door_(std::move(world.door)),
      session_(world.session),
      token_(world.token),
      tell_(std::move(tell)),
      waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      joiners_(std::move(world.waiting)) {
  ENSURE(door_ != nullptr && world.leads(), "the leader has a door");
  ENSURE(waker_.is_open(), "the system gives an eventfd");
  thread_ = start_thread([this] { serve(); });
}

OpenDoor::~OpenDoor() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wake();
  thread_.join();
}

void OpenDoor::wake() const { (void)::eventfd_write(waker_.number(), 1); }

void OpenDoor::serve() {
  std::uint64_t admitted = 0;
  for (;;) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ends_) return;
      if (epoch_ != admitted) door_->admit_peers(0, epoch_, session_key(token_, session_));
      served_epoch_ = admitted = epoch_;
    }
    changed_.notify_all();
    Arrivals arrivals = door_->wait(std::chrono::seconds(1), waker_.number());
    eventfd_t count = 0;
    (void)::eventfd_read(waker_.number(), &count);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Joiner& joiner : arrivals.joiners) joiners_.push_back(std::move(joiner));
      for (PeerCall& call : arrivals.calls) {
        PeerSockets& sockets = calls_[call.from];
        (call.link == LinkSocket::kSteps ? sockets.steps : sockets.bulk) = std::move(call.socket);
      }
    }
    changed_.notify_all();
    for (const std::string& sentence : arrivals.refused) {
      if (tell_) tell_(sentence);
    }
  }
}

std::vector<Joiner> OpenDoor::take_joiners() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(joiners_, {});
}

void OpenDoor::welcome(Joiner& joiner, int number) {
  frazil::welcome(joiner, {.process = number, .session = session_}, token_);
}

void OpenDoor::expect_calls(std::uint64_t epoch) {
  std::unique_lock<std::mutex> lock(mutex_);
  epoch_ = epoch;
  calls_.clear();
  wake();
  changed_.wait(lock, [&] { return served_epoch_ == epoch; });
}

PeerSockets OpenDoor::take_calls(int number, Duration limit, const JoinCheck& check) {
  const auto until = JoinClock::now() + limit;
  std::unique_lock<std::mutex> lock(mutex_);
  const auto are_there = [&] { return calls_.contains(number) && calls_[number].are_open(); };
  while (!changed_.wait_for(lock, kLook, are_there)) {
    if (JoinClock::now() >= until) {
      throw PeerLost("process " + std::to_string(number) + " did not connect to its peers in time");
    }
    if (check) check();
  }
  PeerSockets sockets = std::move(calls_[number]);
  calls_.erase(number);
  return sockets;
}

}  // namespace frazil
