#include "exec/links/peer_links.h"

#include <ATen/ATen.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "exec/devices/start_thread.h"
#include "exec/links/lent_memory.h"
#include "exec/links/link_peer.h"
#include "exec/links/socket.h"
#include "profiles/error.h"

namespace frazil {

PeerLinks::PeerLinks(std::vector<PeerSockets> by_process, LinkOptions options)
    : options_(options), pool_(options.most_pooled_bytes), mark_(draw_mark()) {
  for (PeerSockets& sockets : by_process) {
    let_read(sockets);
    ENSURE(sockets.steps.is_open() == sockets.bulk.is_open(), "a peer has two sockets or none");
    peers_.push_back(std::make_unique<LinkPeer>(std::move(sockets), pool_));
  }
  writer_ = start_thread([this] { write_on(); });
  for (int process = 0; options_.lends && process < processes(); ++process) greet(process);
}

// Whoever has inherited sockets of this process was begun with it. Beyond that nobody is let.
void PeerLinks::let_read(const PeerSockets& sockets) {
  if (!options_.lends || is_readable_ || !sockets.are_open() || is_tcp(sockets.bulk)) return;
  allow_reading();
  is_readable_ = true;
}

PeerLinks::~PeerLinks() {
  finish_sending();
  is_ending_ = true;
  writer_alarm_.ring();
  writer_.join();
  for (const std::unique_ptr<LinkPeer>& peer : peers_) drop(*peer);
}

void PeerLinks::finish_sending() {
  const auto until = Clock::now() + options_.linger;
  const auto is_outstanding = [](const std::unique_ptr<LinkPeer>& peer) {
    return peer->is_open && peer->outstanding() > 0;
  };
  while (std::any_of(peers_.begin(), peers_.end(), is_outstanding) && Clock::now() < until) {
    is_polling_ = true;
    read_ready(std::chrono::milliseconds(5));
    is_polling_ = false;
  }
}

LinkCounts PeerLinks::counts() const {
  return {.stale_frames = frames_.stale(),
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
  frames_.open(epoch, std::move(world));
  for (int process = 0; process < processes(); ++process) {
    LinkPeer& peer = *peers_[static_cast<std::size_t>(process)];
    std::optional<std::string> lost;
    {
      const std::lock_guard<std::mutex> own(peer.mutex);
      lost = peer.lost;
    }
    if (lost) frames_.lose(process, *lost);
  }
}

// Whoever looks for what has come has the reader's role meanwhile; the writer has nothing for a
// process that is gone.
void PeerLinks::connect(int process, PeerSockets sockets) {
  ENSURE(sockets.are_open(), "a process that comes has both sockets");
  while (!reading_.try_take()) std::this_thread::yield();
  std::unique_ptr<LinkPeer>& peer = peers_[static_cast<std::size_t>(process)];
  let_read(sockets);
  drop(*peer);  // that the one before has gone may not have been read yet
  {
    const std::lock_guard<std::mutex> lock(exchanging_);
    peer = std::make_unique<LinkPeer>(std::move(sockets), pool_);
  }
  {
    const std::lock_guard<std::mutex> lock(world_mutex_);
    frames_.forget(process);
  }
  reading_.give_back();
  if (options_.lends) greet(process);
}

void PeerLinks::lose(int process, const std::string& why) {
  LinkPeer& peer = *peers_[static_cast<std::size_t>(process)];
  if (!peer.is_open) return;
  const std::lock_guard<std::mutex> lock(world_mutex_);
  {
    const std::lock_guard<std::mutex> own(peer.mutex);
    if (peer.lost) return;
    peer.lost = why;
  }
  drop(peer);
  free_credit();
  frames_.lose(process, why);
}

// The sockets are shut before lent memory is let go, so that no reader takes it for what it was.
void PeerLinks::drop(LinkPeer& peer) {
  peer.is_open = false;
  peer.shut();
  peer.steps.out.close();
  peer.bulk.out.close();
  std::map<std::uint64_t, LinkPeer::Loan> loans;
  const std::lock_guard<std::mutex> lock(peer.mutex);
  loans.swap(peer.loans);
  peer.lent_bytes = 0;
}

void PeerLinks::send(int process, LinkSocket socket, FrameHead head, Tensors tensors) {
  LinkPeer& peer = *peers_[static_cast<std::size_t>(process)];
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
  writer_alarm_.ring();
}

// Moves large tensors to a loan and puts their addresses into the head.
void PeerLinks::lend(LinkPeer& peer, FrameHead& head, Tensors& tensors) {
  LinkPeer::Loan loan;
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
  const LinkPeer& peer = *peers_[static_cast<std::size_t>(process)];
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
  if (is_polling_) alarm_.ring();
}

void PeerLinks::nudge() { free_credit(); }

// Returns true if anything was written; lists the sockets that take no more now.
bool PeerLinks::write_some(std::vector<pollfd>& full) {
  const std::lock_guard<std::mutex> lock(exchanging_);
  bool wrote = false;
  for (const std::unique_ptr<LinkPeer>& peer : peers_) {
    for (const LinkSocket socket : kLinkSockets) {
      LinkPeer::Way& way = peer->way(socket);
      const std::int64_t before = way.out.bytes();
      if (before == 0) continue;
      if (way.out.flush()) full.push_back({way.socket.number(), POLLOUT, 0});
      wrote = wrote || way.out.bytes() < before;
    }
  }
  return wrote;
}

void PeerLinks::write_on() {
  std::vector<pollfd> entries;
  while (!is_ending_) {
    entries.assign(1, {writer_alarm_.number(), POLLIN, 0});
    if (write_some(entries)) free_credit();
    poll(entries.data(), entries.size(), -1);
    if (entries[0].revents != 0) writer_alarm_.silence();
  }
}

}  // namespace frazil
