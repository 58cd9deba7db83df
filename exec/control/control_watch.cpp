#include "exec/control/control_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
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

constexpr int kEvents = 128;  // taken at once
constexpr int kWaker = -1;    // in place of a peer
constexpr Duration kMoment = std::chrono::microseconds(100);
constexpr Duration kLook = ControlWatch::kBeat / 2;

int to_int_ms(Duration duration) {
  return static_cast<int>(duration / std::chrono::milliseconds(1));
}

void wait_for(const Descriptor& waits, int descriptor, int number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = number;
  ENSURE(::epoll_ctl(waits.number(), EPOLL_CTL_ADD, descriptor, &event) == 0,
         "the system watches a socket");
}

// Steady clocks of good hosts run within some millionths of each other.
constexpr std::int64_t kDriftParts = 20'000;  // 50 millionths

ClockOffset drifted(ClockOffset clock, Duration age) {
  clock.uncertainty += age / kDriftParts;
  return clock;
}

// How the sentence goes on that begins with whose process it is.
constexpr const char* kSilent = "has not been heard of for ";

}  // namespace

ControlWatch::ControlWatch(Calls calls)
    : calls_(std::move(calls)),
      waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      waits_(::epoll_create1(EPOLL_CLOEXEC)) {
  ENSURE(waker_.is_open() && waits_.is_open(), "the system gives an eventfd and an epoll");
  wait_for(waits_, waker_.number(), kWaker);
  thread_ = start_thread([this] { watch(); });
}

ControlWatch::~ControlWatch() {
  stops_ = true;
  wake();
  thread_.join();
}

void ControlWatch::wake() const { (void)::eventfd_write(waker_.number(), 1); }

void ControlWatch::add(int peer, Descriptor socket) {
  ENSURE(peer != kWaker, "a peer has a number of its own");
  (void)take_away(peer);
  const int descriptor = socket.number();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_[peer] = std::make_shared<Peer>(std::move(socket));
    wait_for(waits_, descriptor, peer);
  }
  wake();
}

void ControlWatch::remove(int peer) { (void)take_away(peer); }

// Whoever still sends to the peer keeps its descriptor open, which must not wake anybody.
bool ControlWatch::take_away(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = peers_.find(number);
  if (found == peers_.end()) return false;
  (void)::epoll_ctl(waits_.number(), EPOLL_CTL_DEL, found->second->socket.descriptor(), nullptr);
  found->second->socket.shut_down();
  peers_.erase(found);
  return true;
}

std::shared_ptr<ControlWatch::Peer> ControlWatch::find(int number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = peers_.find(number);
  return found == peers_.end() ? nullptr : found->second;
}

bool ControlWatch::send(int peer, const ControlMessage& message) {
  const std::shared_ptr<Peer> found = find(peer);
  return found && found->socket.send(message);
}

void ControlWatch::send_all(const std::set<int>& peers, const ControlMessage& message) {
  const std::string bytes = to_bytes(message);
  for (const auto& [number, peer] : this->peers()) {
    if (peers.contains(number)) (void)peer->socket.send_bytes(bytes);
  }
}

ClockOffset ControlWatch::clock_of(int peer) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second->clock.is_known()) return {};
  ClockOffset clock = drifted(found->second->clock, Duration{now_ns() - found->second->clock_ns});
  if (std::chrono::abs(clock.offset) <= clock.uncertainty) clock.offset = Duration{0};
  return clock;
}

ControlWatch::Peers ControlWatch::peers() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peers_;
}

// What one thread is told of another may have read already.
void ControlWatch::take_ready(Duration limit) {
  std::array<epoll_event, kEvents> events;
  const int found = ::epoll_wait(waits_.number(), events.data(), kEvents, to_int_ms(limit));
  for (int i = 0; i < found; ++i) {
    const int number = events[static_cast<std::size_t>(i)].data.fd;
    eventfd_t count = 0;
    if (number == kWaker) {
      (void)::eventfd_read(waker_.number(), &count);
    } else if (const std::shared_ptr<Peer> peer = find(number)) {
      const std::lock_guard<std::mutex> lock(reading_);
      read(number, *peer);
    }
  }
}

// Does nothing while another thread reads.
void ControlWatch::look() {
  if (!reading_.try_lock()) return;
  reading_.unlock();
  take_ready(Duration{0});
}

void ControlWatch::look_until(const std::function<bool()>& holds) {
  const SteadyTime end = std::chrono::steady_clock::now() + kMoment;
  while (!holds() && std::chrono::steady_clock::now() < end) look();
}

void ControlWatch::watch() {
  SteadyTime looked = std::chrono::steady_clock::now();
  SteadyTime beaten = looked - kBeat;
  while (!stops_) {
    take_ready(kLook);
    // Of many peers, going through all of them is left to the moments in which that is due.
    const SteadyTime now = std::chrono::steady_clock::now();
    if (now - looked >= kLook) {
      // A look counts two beats at most: what is more, this process has slept itself.
      count_silence(peers(), std::min<Duration>(now - looked, 2 * kBeat));
      looked = now;
    }
    if (now - beaten < kBeat) continue;
    beaten = now;
    for (const auto& [number, peer] : peers()) beat(*peer);
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

// Of the way there and back, the time that the beat lay at the peer is taken away.
void ControlWatch::note_beat(Peer& peer, const BeatMessage& beat) {
  const std::int64_t now = now_ns();
  bool was_known = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    was_known = peer.clock.is_known();
    peer.last_beat_ns = beat.sent_ns;
    peer.heard_ns = now;
    const Duration trip{(now - beat.answers_ns) - (beat.sent_ns - beat.heard_ns)};
    const bool answers = beat.answers_ns >= 0 && trip >= Duration{0};
    const Duration sure = drifted(peer.clock, Duration{now - peer.clock_ns}).uncertainty;
    if (answers && (!was_known || trip / 2 <= sure)) {
      const std::int64_t there = beat.heard_ns - beat.answers_ns;
      const std::int64_t back = beat.sent_ns - now;
      peer.clock = {.offset = Duration{there / 2 + back / 2}, .uncertainty = trip / 2};
      peer.clock_ns = now;
    }
  }
  // The first beats are answered at once, so that clocks are known as soon as both ends are there.
  if (!was_known) this->beat(peer);
}

void ControlWatch::beat(Peer& peer) {
  BeatMessage message;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    message.answers_ns = std::exchange(peer.last_beat_ns, -1);
    message.heard_ns = peer.heard_ns;
  }
  message.sent_ns = now_ns();
  // A connection that has ended is told of where it is read. One that takes nothing any more holds
  // nobody else up.
  peer.socket.offer(message);
}

void ControlWatch::count_silence(const Peers& present, Duration passed) {
  const std::lock_guard<std::mutex> lock(reading_);
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
  const std::shared_ptr<Peer> ending = find(number);
  if (take_away(number)) calls_.on_end(number, why, since(ending->heard));
}

}  // namespace frazil
