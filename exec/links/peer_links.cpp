#include "exec/links/peer_links.h"

#include <ATen/ATen.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "exec/devices/start_thread.h"
#include "exec/links/checksum.h"
#include "exec/links/lent_memory.h"
#include "exec/links/receive_stream.h"
#include "exec/links/send_queue.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::array<LinkSocket, 2> kSockets = {LinkSocket::kSteps, LinkSocket::kBulk};
constexpr std::size_t kMostEarly = 1 << 16;

Descriptor make_alarm() {
  Descriptor alarm(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!alarm.is_open()) throw SocketError("cannot make an event descriptor");
  return alarm;
}

void ring(const Descriptor& alarm) {
  const std::uint64_t one = 1;
  // It can only fail when the alarm rings already.
  [[maybe_unused]] const ssize_t written = write(alarm.number(), &one, sizeof one);
}

void silence(const Descriptor& alarm) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(alarm.number(), &count, sizeof count);
}

timespec to_timespec(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

bool is_shut(int socket) {
  pollfd entry{socket, POLLRDHUP, 0};
  return poll(&entry, 1, 0) != 0;
}

std::uint32_t sum_bytes(const at::Tensor& tensor) {
  return tensor.defined() ? crc32c(tensor.const_data_ptr(), tensor.nbytes()) : 0;
}

// The role of the reader, given back at the end whatever happens.
struct Reading {
  ReaderRole* role;
  ~Reading() { role->give_back(); }
};

}  // namespace

LinkSocket socket_of(MessageLane lane) {
  switch (lane) {
    case MessageLane::kActivation:
    case MessageLane::kActivationGradient:
    case MessageLane::kNorms:
    case MessageLane::kProbe:
      return LinkSocket::kSteps;
    case MessageLane::kReduction:
    case MessageLane::kState:
      return LinkSocket::kBulk;
  }
  return LinkSocket::kBulk;
}

struct PeerLinks::Peer {
  // One direction each way over one socket.
  struct Way {
    Way(Descriptor given, const TensorPool& pool)
        : socket(std::move(given)), out(socket.number()), in(socket.number(), pool) {}
    Descriptor socket;
    SendQueue out;
    ReceiveStream in;
    bool is_done = false;  // the other end has closed it; of the reader
  };
  struct Loan {
    Tensors tensors;
    std::int64_t bytes = 0;
  };

  Peer(PeerSockets sockets, const TensorPool& pool)
      : steps(std::move(sockets.steps), pool), bulk(std::move(sockets.bulk), pool) {
    is_open = steps.socket.is_open();
    if (!is_open) lost = "has ended";
  }

  Way& way(LinkSocket socket) { return socket == LinkSocket::kSteps ? steps : bulk; }
  std::int64_t outstanding() const {
    return steps.out.bytes() + bulk.out.bytes() + lent_bytes.load();
  }
  void shut() {
    for (Way* way : {&steps, &bulk}) {
      if (way->socket.is_open()) shutdown(way->socket.number(), SHUT_RDWR);
    }
  }

  Way steps;
  Way bulk;
  std::atomic<bool> is_open{false};
  std::atomic<bool> reads_us{false};
  pid_t process = 0;  // from its greeting; of the reader
  std::atomic<std::int64_t> lent_bytes{0};
  std::mutex mutex;  // guards all below
  std::uint64_t last_loan = 0;
  std::map<std::uint64_t, Loan> loans;
  std::optional<std::string> lost;  // why
};

PeerLinks::PeerLinks(std::vector<PeerSockets> by_process, LinkOptions options)
    : options_(options),
      pool_(options.most_pooled_bytes),
      mark_(draw_mark()),
      alarm_(make_alarm()),
      writer_alarm_(make_alarm()) {
  if (options_.lends) allow_reading();
  for (PeerSockets& sockets : by_process) {
    ENSURE(sockets.steps.is_open() == sockets.bulk.is_open(), "a peer has two sockets or none");
    peers_.push_back(std::make_unique<Peer>(std::move(sockets), pool_));
  }
  writer_ = start_thread([this] { write_on(); });
  for (int process = 0; options_.lends && process < processes(); ++process) greet(process);
}

PeerLinks::~PeerLinks() {
  finish_sending();
  is_ending_ = true;
  ring(writer_alarm_);
  writer_.join();
  for (const std::unique_ptr<Peer>& peer : peers_) drop(*peer);
}

void PeerLinks::finish_sending() {
  const auto until = Clock::now() + options_.linger;
  const auto is_outstanding = [](const std::unique_ptr<Peer>& peer) {
    return peer->is_open && peer->outstanding() > 0;
  };
  while (std::any_of(peers_.begin(), peers_.end(), is_outstanding) && Clock::now() < until) {
    is_polling_ = true;
    read_ready(std::chrono::milliseconds(5));
    is_polling_ = false;
  }
}

LinkCounts PeerLinks::counts() const {
  return {.stale_frames = stale_,
          .lent_tensors = lent_,
          .lent_bytes = lent_bytes_,
          .queued_frames = queued_};
}

bool PeerLinks::lends_to(int process) const {
  return peers_[static_cast<std::size_t>(process)]->reads_us;
}

void PeerLinks::greet(int process) {
  if (mark_.empty()) return;
  FrameHead head{.kind = FrameKind::kGreeting};
  head.order = reinterpret_cast<std::uintptr_t>(mark_.data());
  head.number = static_cast<std::uint64_t>(getpid());
  head.text = mark_;
  send(process, LinkSocket::kSteps, std::move(head));
}

void PeerLinks::open(std::uint32_t epoch, LinkWorld world) {
  const std::lock_guard<std::mutex> lock(world_mutex_);
  ENSURE(epoch > epoch_, "each world has an epoch of its own");
  epoch_ = epoch;
  world_ = std::move(world);
  for (Early& early : std::exchange(early_, {})) {
    try {
      hand_on(early.process, std::move(early.head), std::move(early.tensors));
    } catch (const FrameError&) {
      ++stale_;  // who sent it is not asked here; what waits for it ends at its deadline
    }
  }
  for (int process = 0; process < processes(); ++process) {
    Peer& peer = *peers_[static_cast<std::size_t>(process)];
    std::optional<std::string> lost;
    {
      const std::lock_guard<std::mutex> own(peer.mutex);
      lost = peer.lost;
    }
    if (lost) world_.lose(process, *lost);
  }
}

void PeerLinks::lose(int process, const std::string& why) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  if (!peer.is_open) return;
  const std::lock_guard<std::mutex> lock(world_mutex_);
  {
    const std::lock_guard<std::mutex> own(peer.mutex);
    if (peer.lost) return;
    peer.lost = why;
  }
  drop(peer);
  free_credit();
  if (world_.lose) world_.lose(process, why);
}

// The sockets are shut before lent memory is let go, so that no reader takes it for what it was.
void PeerLinks::drop(Peer& peer) {
  peer.is_open = false;
  peer.shut();
  peer.steps.out.close();
  peer.bulk.out.close();
  std::map<std::uint64_t, Peer::Loan> loans;
  const std::lock_guard<std::mutex> lock(peer.mutex);
  loans.swap(peer.loans);
  peer.lent_bytes = 0;
}

void PeerLinks::send(int process, LinkSocket socket, FrameHead head, Tensors tensors) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  if (!peer.is_open) return;
  head.checked = options_.checks_transfers;
  for (at::Tensor& tensor : tensors) {
    tensor = make_dense(tensor);
    head.tensors.push_back(describe(tensor));
    if (head.checked) head.tensors.back().checksum = sum_bytes(tensor);
  }
  if (peer.reads_us) lend(peer, head, tensors);
  std::erase_if(tensors, [](const at::Tensor& tensor) { return !tensor.defined(); });
  if (!peer.way(socket).out.send(encode_frame(head), std::move(tensors))) return;
  ++queued_;
  ring(writer_alarm_);
}

// Moves large tensors to a loan and puts their addresses into the head.
void PeerLinks::lend(Peer& peer, FrameHead& head, Tensors& tensors) {
  Peer::Loan loan;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorHead& tensor = head.tensors[i];
    if (tensor.place != TensorPlace::kBehind ||
        tensor.bytes <
            static_cast<std::uint64_t>(std::max<std::int64_t>(options_.least_lent_bytes, 1))) {
      continue;
    }
    tensor.place = TensorPlace::kLent;
    tensor.address = reinterpret_cast<std::uintptr_t>(tensors[i].const_data_ptr());
    loan.bytes += static_cast<std::int64_t>(tensor.bytes);
    loan.tensors.push_back(std::exchange(tensors[i], {}));
  }
  if (loan.tensors.empty()) return;
  lent_ += loan.tensors.size();
  lent_bytes_ += static_cast<std::uint64_t>(loan.bytes);
  const std::lock_guard<std::mutex> lock(peer.mutex);
  if (peer.lost) return;
  peer.lent_bytes += loan.bytes;
  head.number = ++peer.last_loan;
  peer.loans.emplace(head.number, std::move(loan));
}

bool PeerLinks::has_credit(int process, std::int64_t bytes) const {
  const Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const std::int64_t outstanding = peer.outstanding();
  return !peer.is_open || outstanding == 0 || outstanding + bytes <= options_.credit_bytes;
}

bool PeerLinks::wait_for_credit(int process, std::int64_t bytes, const std::function<bool()>& stop,
                                Duration limit) {
  return wait(
      credit_mutex_, credit_freed_, [&] { return has_credit(process, bytes) || stop(); }, limit);
}

// The lock keeps a sender from missing the news between its check and its sleep.
void PeerLinks::free_credit() {
  { const std::lock_guard<std::mutex> lock(credit_mutex_); }
  credit_freed_.notify_all();
  if (is_polling_) ring(alarm_);
}

void PeerLinks::nudge() { free_credit(); }

void PeerLinks::write_on() {
  std::vector<pollfd> entries;
  while (!is_ending_) {
    entries.assign(1, {writer_alarm_.number(), POLLIN, 0});
    bool wrote = false;
    for (const std::unique_ptr<Peer>& peer : peers_) {
      for (const LinkSocket socket : kSockets) {
        Peer::Way& way = peer->way(socket);
        const std::int64_t before = way.out.bytes();
        if (before == 0) continue;
        if (way.out.flush()) entries.push_back({way.socket.number(), POLLOUT, 0});
        wrote = wrote || way.out.bytes() < before;
      }
    }
    if (wrote) free_credit();
    poll(entries.data(), entries.size(), -1);
    if (entries[0].revents != 0) silence(writer_alarm_);
  }
}

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
  for (const std::unique_ptr<Peer>& peer : peers_) {
    for (const LinkSocket socket : kSockets) {
      const Peer::Way& way = peer->way(socket);
      entries.push_back({way.is_done ? -1 : way.socket.number(), POLLIN, 0});
    }
  }
  const timespec time = to_timespec(std::max(limit, Duration{0}));
  if (ppoll(entries.data(), entries.size(), &time, nullptr) <= 0) return;
  if (entries[0].revents != 0) silence(alarm_);
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].fd < 0 || entries[i].revents == 0) continue;
    read_from(static_cast<int>((i - 1) / 2), kSockets[(i - 1) % 2]);
  }
}

void PeerLinks::read_from(int process, LinkSocket socket) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  Peer::Way& way = peer.way(socket);
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
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
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
  hand_on(process, std::move(head), std::move(tensors));
}

// Takes frames that are no matter of a world.
bool PeerLinks::take_own(int process, FrameHead& head) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
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
  Peer::Loan loan;
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
bool PeerLinks::borrow(Peer& peer, LinkSocket socket, FrameHead& head, Tensors& tensors) {
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
  if (peer.way(socket).out.send(encode_frame(taken), {})) ring(writer_alarm_);
  return true;
}

// Requires: world_mutex_.
void PeerLinks::hand_on(int process, FrameHead&& head, Tensors&& tensors) {
  if (head.epoch == epoch_ && world_.take)
    return world_.take(process, std::move(head), std::move(tensors));
  if (head.epoch > epoch_ && early_.size() < kMostEarly) {
    early_.push_back({process, std::move(head), std::move(tensors)});
    return;
  }
  // Who ends an old world says so to all; that is no stray.
  if (head.kind != FrameKind::kFinished) ++stale_;
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

std::vector<std::vector<PeerSockets>> make_socket_pairs(int processes) {
  const auto count = static_cast<std::size_t>(processes);
  std::vector<std::vector<PeerSockets>> sockets(count);
  for (auto& row : sockets) row.resize(count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      SocketPair steps = make_socket_pair();
      SocketPair bulk = make_socket_pair();
      sockets[a][b] = {std::move(steps[0]), std::move(bulk[0])};
      sockets[b][a] = {std::move(steps[1]), std::move(bulk[1])};
    }
  }
  return sockets;
}

}  // namespace frazil
