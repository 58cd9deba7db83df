#include "exec/links/gloo_links.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "exec/devices/start_thread.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Holds nearly every head whole; what is longer follows in a transfer of its own.
constexpr std::size_t kBlockBytes = 4096;
// All who lose a process find that by themselves, and say it in the same words.
constexpr const char* kEnded = "has ended";

at::Tensor make_bytes(std::size_t size) {
  return at::empty({static_cast<std::int64_t>(size)}, at::kByte);
}

at::Tensor copy_bytes(std::string_view bytes) {
  at::Tensor tensor = make_bytes(bytes.size());
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

std::string_view view_bytes(const at::Tensor& tensor, std::size_t size) {
  return {static_cast<const char*>(tensor.const_data_ptr()), size};
}

// The memory of a dense tensor, whatever its layout: Gloo takes contiguous ones only.
at::Tensor as_bytes(const at::Tensor& tensor) {
  void* const memory = const_cast<void*>(tensor.const_data_ptr());
  return at::from_blob(
      memory, {static_cast<std::int64_t>(tensor.nbytes())}, [tensor](void*) {}, at::kByte);
}

bool has_bytes(const at::Tensor& tensor) { return tensor.defined() && tensor.nbytes() > 0; }

}  // namespace

// One of the two streams of frames to and from a process.
struct GlooLinks::Way {
  struct Frame {
    std::vector<GlooTransfer> transfers;
    std::int64_t bytes = 0;
  };

  int tag = 0;
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::deque<Frame> sends;  // under way, in the order of sending
  bool is_shut = false;
  bool is_refused = false;             // Gloo sends no more
  std::vector<GlooTransfer> receives;  // that the receiving thread waits for
  std::thread receiver;
  std::thread sender;
};

struct GlooLinks::Peer {
  std::array<Way, 2> ways;
  std::atomic<bool> is_open{true};
  std::atomic<std::int64_t> bytes{0};  // sent and not yet gone
  std::atomic<int> receivers{2};       // ways whose frames are still being received
  std::optional<std::string> lost;     // why; guarded by the links' world_mutex_

  Way& way(LinkSocket socket) { return ways[static_cast<std::size_t>(socket)]; }
};

GlooLinks::GlooLinks(std::unique_ptr<GlooGroup> group, GlooLinkOptions options)
    : group_(std::move(group)), options_(options), pool_(options.most_pooled_bytes) {
  for (int process = 0; process < processes(); ++process) {
    peers_.push_back(process == group_->process() ? nullptr : std::make_unique<Peer>());
  }
  for (int process = 0; process < processes(); ++process) {
    Peer* const peer = peers_[static_cast<std::size_t>(process)].get();
    if (peer == nullptr) continue;
    for (const LinkSocket socket : kLinkSockets) {
      Way& way = peer->way(socket);
      way.tag = static_cast<int>(socket);
      way.receiver = start_thread([this, process, &way] { receive_on(process, way); });
      way.sender = start_thread([this, process, &way] { await_sends(process, way); });
    }
  }
}

GlooLinks::~GlooLinks() {
  finish_sending();
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer) shut(*peer);
  }
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (!peer) continue;
    for (Way& way : peer->ways) {
      way.receiver.join();
      way.sender.join();
    }
  }
}

void GlooLinks::finish_sending() {
  std::unique_lock<std::mutex> lock(credit_mutex_);
  credit_freed_.wait_for(lock, options_.linger, [&] {
    return std::none_of(peers_.begin(), peers_.end(), [](const std::unique_ptr<Peer>& peer) {
      return peer && peer->is_open && peer->bytes > 0;
    });
  });
}

void GlooLinks::open(std::uint32_t epoch, LinkWorld world) {
  const std::lock_guard<std::mutex> lock(world_mutex_);
  frames_.open(epoch, std::move(world));
  for (int process = 0; process < processes(); ++process) {
    const Peer* const peer = peers_[static_cast<std::size_t>(process)].get();
    if (peer != nullptr && peer->lost) frames_.lose(process, *peer->lost);
  }
}

void GlooLinks::lose(int process, const std::string& why) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  {
    const std::lock_guard<std::mutex> lock(world_mutex_);
    if (peer.lost) return;
    peer.lost = why;
    peer.is_open = false;
    frames_.lose(process, why);
  }
  shut(peer);
  free_credit();
}

// The threads of the ways end by themselves, once what they wait for is aborted.
void GlooLinks::shut(Peer& peer) {
  peer.is_open = false;
  for (Way& way : peer.ways) {
    const std::lock_guard<std::mutex> lock(way.mutex);
    way.is_shut = true;
    for (GlooTransfer& transfer : way.receives) transfer.abort();
    for (Way::Frame& frame : way.sends) {
      for (GlooTransfer& transfer : frame.transfers) transfer.abort();
    }
    way.changed.notify_all();
  }
}

void GlooLinks::send(int process, LinkSocket socket, FrameHead head, Tensors tensors) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  if (!peer.is_open) return;
  Way::Frame frame;
  for (at::Tensor& tensor : tensors) {
    tensor = make_dense(tensor);
    head.tensors.push_back(describe(tensor));
    frame.bytes += static_cast<std::int64_t>(head.tensors.back().bytes);
  }
  const std::string bytes = encode_frame(head);
  frame.bytes += static_cast<std::int64_t>(bytes.size());
  const std::string_view first = std::string_view(bytes).substr(0, kBlockBytes);
  const std::string_view rest = std::string_view(bytes).substr(first.size());
  Way& way = peer.way(socket);
  const std::lock_guard<std::mutex> lock(way.mutex);
  if (way.is_shut || way.is_refused) return;
  try {
    const auto post = [&](at::Tensor tensor) {
      frame.transfers.push_back(group_->send(std::move(tensor), process, way.tag));
    };
    post(copy_bytes(first));
    if (!rest.empty()) post(copy_bytes(rest));
    for (at::Tensor& tensor : tensors) {
      if (has_bytes(tensor)) post(as_bytes(tensor));
    }
    peer.bytes += frame.bytes;
    way.sends.push_back(std::move(frame));
  } catch (const GlooError&) {
    // A part of the frame may have gone, so that nothing can follow it. The world may be held by
    // the caller: a thread of the links tells it.
    way.is_refused = true;
    for (GlooTransfer& transfer : frame.transfers) transfer.abort();
  }
  way.changed.notify_one();
}

bool GlooLinks::has_credit(int process, std::int64_t bytes) const {
  const Peer& peer = *peers_[static_cast<std::size_t>(process)];
  const std::int64_t outstanding = peer.bytes;
  return !peer.is_open || outstanding == 0 || outstanding + bytes <= options_.credit_bytes;
}

bool GlooLinks::wait_for_credit(int process, std::int64_t bytes, const std::function<bool()>& stop,
                                Duration limit) {
  std::unique_lock<std::mutex> lock(credit_mutex_);
  return credit_freed_.wait_for(lock, limit, [&] { return has_credit(process, bytes) || stop(); });
}

// The lock keeps a sender from missing the news between its check and its sleep.
void GlooLinks::free_credit() {
  { const std::lock_guard<std::mutex> lock(credit_mutex_); }
  credit_freed_.notify_all();
}

void GlooLinks::nudge() { free_credit(); }

void GlooLinks::await_sends(int process, Way& way) {
  Peer& peer = *peers_[static_cast<std::size_t>(process)];
  for (;;) {
    Way::Frame* frame = nullptr;
    {
      std::unique_lock<std::mutex> lock(way.mutex);
      way.changed.wait(lock, [&] { return way.is_shut || way.is_refused || !way.sends.empty(); });
      if (way.is_shut) return;
      // A frame stays in place while others are added behind it.
      if (!way.is_refused) frame = &way.sends.front();
    }
    if (frame == nullptr) return lose(process, kEnded);
    try {
      for (GlooTransfer& transfer : frame->transfers) {
        if (!transfer.wait()) return;
      }
    } catch (const GlooError&) {
      return;  // the threads that receive from the process find out, too
    }
    Way::Frame done;
    {
      const std::lock_guard<std::mutex> lock(way.mutex);
      done = std::move(way.sends.front());
      way.sends.pop_front();
    }
    peer.bytes -= done.bytes;
    free_credit();
  }
}

// Always has the block of the next frame posted, so that its sender waits for nobody.
void GlooLinks::receive_on(int process, Way& way) {
  const auto post = [&](const at::Tensor& tensor) {
    const std::lock_guard<std::mutex> lock(way.mutex);
    if (way.is_shut) return GlooTransfer();
    way.receives.push_back(group_->receive(tensor, process, way.tag));
    return way.receives.back();
  };
  const auto wait = [&](GlooTransfer transfer) {
    const bool is_done = transfer.is_posted() && transfer.wait();
    const std::lock_guard<std::mutex> lock(way.mutex);
    if (!way.receives.empty()) way.receives.erase(way.receives.begin());
    return is_done && !way.is_shut;
  };
  try {
    at::Tensor block = make_bytes(kBlockBytes);
    GlooTransfer next = post(block);
    while (wait(next)) {
      std::string bytes(view_bytes(block, kPrefixBytes));
      const std::size_t size = read_head_bytes(bytes);
      bytes = view_bytes(block, std::min(size, kBlockBytes));
      if (size > kBlockBytes) {
        const at::Tensor rest = make_bytes(size - kBlockBytes);
        if (!wait(post(rest))) return;
        bytes += view_bytes(rest, size - kBlockBytes);
      }
      FrameHead head = decode_frame(bytes);
      Tensors tensors;
      std::vector<GlooTransfer> transfers;
      for (const TensorHead& tensor : head.tensors) {
        if (tensor.place == TensorPlace::kLent) throw FrameError("found a loan, expected bytes");
        tensors.push_back(pool_.make(tensor));
        if (has_bytes(tensors.back())) transfers.push_back(post(as_bytes(tensors.back())));
      }
      block = make_bytes(kBlockBytes);
      next = post(block);
      for (const GlooTransfer& transfer : transfers) {
        if (!wait(transfer)) return;
      }
      const std::lock_guard<std::mutex> lock(world_mutex_);
      if (peers_[static_cast<std::size_t>(process)]->lost) return;
      frames_.hand_on(process, std::move(head), std::move(tensors));
    }
  } catch (const GlooError&) {
    // What the process sent before its end on the other way is taken first.
    Peer& peer = *peers_[static_cast<std::size_t>(process)];
    if (--peer.receivers == 0) lose(process, kEnded);
  } catch (const FrameError& error) {
    lose(process, std::string("has sent what is no frame (") + error.what() + ")");
  }
}

}  // namespace frazil
