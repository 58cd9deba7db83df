#include "exec/control/control_watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "exec/devices/start_thread.h"
#include "exec/devices/steady_time.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// A process has this time until it speaks: programs take some to begin on a machine with much to
// do.
constexpr Duration kBeginning = std::chrono::minutes(1);

// How the sentence goes on that begins with whose process it is.
constexpr const char* kSilent = "has not been heard of for ";

}  // namespace

ControlWatch::ControlWatch(Calls calls)
    : calls_(std::move(calls)), waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ENSURE(waker_.is_open(), "the system gives an eventfd");
  thread_ = start_thread([this] { watch(); });
}

ControlWatch::~ControlWatch() {
  stops_ = true;
  wake();
  thread_.join();
}

void ControlWatch::wake() const { (void)::eventfd_write(waker_.number(), 1); }

void ControlWatch::add(int peer, Descriptor socket) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_[peer] = std::make_shared<Peer>(std::move(socket));
  }
  wake();
}

void ControlWatch::remove(int peer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  found->second->socket.shut_down();
  peers_.erase(found);
}

bool ControlWatch::send(int peer, const ControlMessage& message) {
  std::shared_ptr<Peer> found;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto there = peers_.find(peer);
    if (there == peers_.end()) return false;
    found = there->second;
  }
  return found->socket.send(message);
}

ClockOffset ControlWatch::clock_of(int peer) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = peers_.find(peer);
  return found == peers_.end() ? ClockOffset{} : found->second->clock;
}

ControlWatch::Peers ControlWatch::peers() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peers_;
}

void ControlWatch::watch() {
  SteadyTime looked = std::chrono::steady_clock::now();
  SteadyTime beaten = looked - kBeat;
  while (!stops_) {
    const Peers present = peers();
    std::vector<pollfd> waits{{.fd = waker_.number(), .events = POLLIN, .revents = 0}};
    for (const auto& [number, peer] : present) {
      waits.push_back({.fd = peer->socket.descriptor(), .events = POLLIN, .revents = 0});
    }
    (void)::poll(waits.data(), waits.size(), static_cast<int>(kBeat.count() / 2'000'000));
    eventfd_t count = 0;
    if (waits[0].revents != 0) (void)::eventfd_read(waker_.number(), &count);
    std::size_t i = 1;
    for (const auto& [number, peer] : present) {
      if (waits[i++].revents != 0) read(number, *peer);
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    // A look counts two beats at most: what is more, this process has slept itself.
    count_silence(present, std::min<Duration>(now - looked, 2 * kBeat));
    looked = now;
    if (now - beaten < kBeat) continue;
    beaten = now;
    beat(present);
  }
}

void ControlWatch::read(int number, Peer& peer) {
  std::vector<ControlMessage> messages;
  bool is_open = false;
  std::string why = "has ended";
  try {
    is_open = peer.socket.receive(messages);
  } catch (const WireError& error) {
    why = std::string("sent what is no message (") + error.what() + ")";
  }
  if (!messages.empty()) note_sound(number, peer);
  for (ControlMessage& message : messages) {
    if (const auto* const beat = std::get_if<BeatMessage>(&message)) {
      note_beat(peer, *beat);
    } else {
      calls_.on_message(number, std::move(message));
    }
  }
  if (!is_open) end(number, why);
}

void ControlWatch::note_sound(int number, Peer& peer) {
  peer.heard = std::chrono::steady_clock::now();
  peer.has_spoken = true;
  const Duration silent = std::exchange(peer.silent, Duration{0});
  if (std::exchange(peer.is_suspect, false) && calls_.on_sound) calls_.on_sound(number, silent);
}

// The peer answered a beat of ours at once with a beat of its own only by chance, so only the
// shortest trip is good; of that trip the middle is taken.
void ControlWatch::note_beat(Peer& peer, const BeatMessage& beat) {
  const std::lock_guard<std::mutex> lock(mutex_);
  peer.last_beat_ns = beat.sent_ns;
  if (beat.answers_ns < 0) return;
  const std::int64_t now = now_ns();
  const Duration trip{now - beat.answers_ns};
  if (trip < Duration{0} || trip >= peer.best_trip) return;
  peer.best_trip = trip;
  peer.clock = {.offset = Duration{beat.sent_ns - (beat.answers_ns + trip.count() / 2)},
                .uncertainty = trip / 2};
}

void ControlWatch::beat(const Peers& present) {
  for (const auto& [number, peer] : present) {
    BeatMessage message{.sent_ns = now_ns()};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      message.answers_ns = std::exchange(peer->last_beat_ns, -1);
    }
    // A connection that has ended is told of where it is read.
    (void)peer->socket.send(message);
  }
}

void ControlWatch::count_silence(const Peers& present, Duration passed) {
  for (const auto& [number, peer] : present) {
    peer->silent += passed;
    if (peer->silent > (peer->has_spoken ? patience() : std::max(patience(), kBeginning))) {
      end(number, kSilent + std::to_string(peer->silent / std::chrono::milliseconds(1)) + " ms");
    } else if (peer->silent > kSuspect && peer->has_spoken && !peer->is_suspect) {
      peer->is_suspect = true;
      if (calls_.on_silence) calls_.on_silence(number, peer->silent);
    }
  }
}

void ControlWatch::end(int number, const std::string& why) {
  Duration unheard{0};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = peers_.find(number);
    if (found == peers_.end()) return;
    found->second->socket.shut_down();
    unheard = since(found->second->heard);
    peers_.erase(found);
  }
  calls_.on_end(number, why, unheard);
}

}  // namespace frazil
