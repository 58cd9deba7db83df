#include "exec/links/peer_links.h"

#include <ATen/ATen.h>
#include <poll.h>

#include <algorithm>

#include "exec/links/lent_memory.h"
#include "exec/links/link_peer.h"

namespace frazil {
namespace {

timespec to_timespec(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

bool is_shut(int socket) {
  pollfd entry{socket, POLLRDHUP, 0};
  return poll(&entry, 1, 0) != 0;
}

// The role of the reader, given back at the end whatever happens.
struct Reading {
  ReaderRole* role;
  ~Reading() { role->give_back(); }
};

}  // namespace

void PeerLinks::look() {
  if (!reading_.try_take()) return;
  const Reading reading{&reading_};
  read_ready(Duration{0});
}

// Waits for `limit` at most until something has come, and reads it. By the reader only.
void PeerLinks::read_ready(Duration limit) {
  std::vector<pollfd> entries;
  entries.reserve(1 + 2 * peers_.size());
  entries.push_back({alarm_.number(), POLLIN, 0});
  bool has_unread = false;
  for (const std::unique_ptr<LinkPeer>& peer : peers_) {
    for (const LinkSocket socket : kLinkSockets) {
      const LinkPeer::Way& way = peer->way(socket);
      entries.push_back({way.is_done ? -1 : way.socket.number(), POLLIN, 0});
      has_unread = has_unread || way.has_unread();
    }
  }
  const timespec time = to_timespec(has_unread ? Duration{0} : std::max(limit, Duration{0}));
  if (ppoll(entries.data(), entries.size(), &time, nullptr) <= 0 && !has_unread) return;
  if (entries[0].revents != 0) alarm_.silence();
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const std::size_t process = (i - 1) / 2;
    const LinkSocket socket = kLinkSockets[(i - 1) % 2];
    if (entries[i].revents == 0 && !peers_[process]->way(socket).has_unread()) continue;
    read_from(static_cast<int>(process), socket);
  }
}

void PeerLinks::read_from(int process, LinkSocket socket) {
  LinkPeer& peer = *peers_[static_cast<std::size_t>(process)];
  LinkPeer::Way& way = peer.way(socket);
  if (way.is_done) return;
  std::string why = "has ended";
  try {
    const auto take = [&](FrameHead&& head, Tensors&& tensors) {
      take_frame(process, socket, std::move(head), std::move(tensors));
    };
    if (way.in.read(take) != ReceiveStream::State::kClosed) return;
    way.is_done = true;
    // What the process sent before its end over the other socket is taken first.
    const LinkSocket other = socket == LinkSocket::kSteps ? LinkSocket::kBulk : LinkSocket::kSteps;
    if (!peer.way(other).is_done) return read_from(process, other);
  } catch (const FrameError& error) {
    why = std::string("has sent what is no frame (") + error.what() + ")";
  }
  peer.steps.is_done = peer.bulk.is_done = true;
  lose(process, why);
}

void PeerLinks::take_frame(int process, LinkSocket socket, FrameHead&& head, Tensors&& tensors) {
  LinkPeer& peer = *peers_[static_cast<std::size_t>(process)];
  if (take_own(process, head)) return;
  {
    const std::lock_guard<std::mutex> lock(peer.mutex);
    if (peer.lost) return;
  }
  if (!borrow(peer, socket, head, tensors)) return lose(process, "has ended");
  for (std::size_t i = 0; head.checked && i < tensors.size(); ++i) {
    if (sum_bytes(tensors[i]) != head.tensors[i].checksum) {
      throw FrameError("found other bytes of " + to_text(head.tag) + " than were sent");
    }
  }
  const std::lock_guard<std::mutex> lock(world_mutex_);
  frames_.hand_on(process, std::move(head), std::move(tensors));
}

// Takes frames that are no matter of a world.
bool PeerLinks::take_own(int process, FrameHead& head) {
  LinkPeer& peer = *peers_[static_cast<std::size_t>(process)];
  if (head.kind == FrameKind::kGreeting) {
    const auto other = static_cast<pid_t>(head.number);
    const bool reads = options_.lends && finds_mark(other, head.order, head.text);
    if (reads) peer.process = other;
    send(process, LinkSocket::kSteps,
         FrameHead{.kind = FrameKind::kGreeted, .number = reads ? 1U : 0U});
    return true;
  }
  if (head.kind == FrameKind::kGreeted) {
    peer.reads_us = options_.lends && head.number == 1;
    return true;
  }
  if (head.kind != FrameKind::kTaken) return false;
  LinkPeer::Loan loan;
  {
    const std::lock_guard<std::mutex> lock(peer.mutex);
    const auto found = peer.loans.find(head.number);
    if (found == peer.loans.end()) return true;
    loan = std::move(found->second);
    peer.loans.erase(found);
    peer.lent_bytes -= loan.bytes;
  }
  free_credit();
  return true;
}

// Reads the tensors that the frame lends. Returns false if the sender is gone.
bool PeerLinks::borrow(LinkPeer& peer, LinkSocket socket, FrameHead& head, Tensors& tensors) {
  bool is_lent = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorHead& tensor = head.tensors[i];
    if (tensor.place != TensorPlace::kLent) continue;
    is_lent = true;
    if (peer.process == 0)
      throw FrameError("found a loan, expected none of a process that cannot be read");
    if (!read_memory(peer.process, tensor.address, tensors[i].mutable_data_ptr(), tensor.bytes)) {
      return false;
    }
  }
  if (!is_lent) return true;
  if (is_shut(peer.way(socket).socket.number())) return false;
  FrameHead taken{.kind = FrameKind::kTaken, .number = head.number};
  if (peer.way(socket).out.send(encode_frame(taken), {})) writer_alarm_.ring();
  return true;
}

bool PeerLinks::read_until(std::mutex& mutex, const std::function<bool()>& is_over,
                           Clock::time_point until) {
  for (;;) {
    is_polling_ = true;  // before the question: an answer that changes after it rings the alarm
    bool over = false;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      over = is_over();
    }
    const Duration left = until - Clock::now();
    if (over || left <= Duration{0}) {
      is_polling_ = false;
      return over;
    }
    read_ready(left);
    is_polling_ = false;
  }
}

bool PeerLinks::wait(std::mutex& mutex, std::condition_variable& wake,
                     const std::function<bool()>& is_over, Duration limit) {
  const auto until = Clock::now() + limit;
  Sleeper sleeper{&mutex, &wake};
  for (;;) {
    if (reading_.take_or_list(sleeper)) {
      const Reading reading{&reading_};
      return read_until(mutex, is_over, until);
    }
    bool over = false;
    bool called = false;
    {
      std::unique_lock<std::mutex> lock(mutex);
      wake.wait_until(lock, until, [&] { return (over = is_over()) || sleeper.is_called; });
      called = sleeper.is_called;
    }
    const bool ends = over || Clock::now() >= until;
    reading_.leave_list(sleeper, called && !ends);
    if (ends) return over;
  }
}

}  // namespace frazil
