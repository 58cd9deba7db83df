#include "exec/in_process_communicator.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

using Clock = std::chrono::steady_clock;

// A wake-up costs tens of microseconds; messages inside a step usually come sooner than that.
constexpr auto kSpin = std::chrono::microseconds(60);

struct Mailbox {
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int, Tag>, Tensors> messages;
  std::atomic<std::uint64_t> posts{0};
};

struct Room {
  explicit Room(int ranks)
      : mailboxes(static_cast<std::size_t>(ranks)),
        spins(static_cast<unsigned>(ranks) <= std::thread::hardware_concurrency()) {}

  std::vector<Mailbox> mailboxes;
  bool spins;
  std::mutex mutex;
  std::condition_variable everyone;
  int waiting = 0;
  std::uint64_t round = 0;
  std::atomic<bool> aborted{false};
  std::string reason;

  [[noreturn]] void throw_lost() {
    const std::lock_guard<std::mutex> lock(mutex);
    throw PeerLost(reason);
  }
};

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<Room> room, int rank)
      : room_(std::move(room)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(room_->mailboxes.size()); }

  void send(int peer, const Tag& tag, Tensors tensors) override {
    ENSURE(peer != rank_ && peer >= 0 && peer < size(), "a message goes to another rank");
    if (room_->aborted) room_->throw_lost();
    Mailbox& box = room_->mailboxes[static_cast<std::size_t>(peer)];
    {
      const std::lock_guard<std::mutex> lock(box.mutex);
      const bool fresh = box.messages.emplace(std::pair(rank_, tag), std::move(tensors)).second;
      ENSURE(fresh, "a tag names one message at a time");
      box.posts.fetch_add(1, std::memory_order_release);
    }
    box.arrived.notify_one();
  }

  Tensors receive(int peer, const Tag& tag) override {
    ENSURE(peer != rank_ && peer >= 0 && peer < size(), "a message comes from another rank");
    if (room_->aborted) room_->throw_lost();
    Mailbox& box = room_->mailboxes[static_cast<std::size_t>(rank_)];
    const std::pair<int, Tag> key(peer, tag);
    if (std::optional<Tensors> message = spin_for(box, key)) return std::move(*message);
    std::unique_lock<std::mutex> lock(box.mutex);
    auto found = box.messages.end();
    box.arrived.wait(lock, [&] {
      found = box.messages.find(key);
      return found != box.messages.end() || room_->aborted;
    });
    if (found == box.messages.end()) {
      lock.unlock();
      room_->throw_lost();
    }
    return take(box, found);
  }

  void barrier() override {
    std::unique_lock<std::mutex> lock(room_->mutex);
    if (room_->aborted) throw PeerLost(room_->reason);
    const std::uint64_t round = room_->round;
    if (++room_->waiting == size()) {
      room_->waiting = 0;
      ++room_->round;
      room_->everyone.notify_all();
    }
    room_->everyone.wait(lock, [&] { return room_->round != round || room_->aborted; });
    if (room_->round == round) throw PeerLost(room_->reason);
  }

  void abort(const std::string& reason) override {
    {
      const std::lock_guard<std::mutex> lock(room_->mutex);
      if (room_->aborted) return;
      room_->reason = reason;
      room_->aborted = true;
    }
    room_->everyone.notify_all();
    for (Mailbox& box : room_->mailboxes) {
      // The lock keeps a rank from missing the news between its check and its sleep.
      const std::lock_guard<std::mutex> lock(box.mutex);
      box.arrived.notify_all();
    }
  }

 private:
  using Messages = std::map<std::pair<int, Tag>, Tensors>;

  static Tensors take(Mailbox& box, Messages::iterator found) {
    Tensors tensors = std::move(found->second);
    box.messages.erase(found);
    return tensors;
  }

  std::optional<Tensors> spin_for(Mailbox& box, const std::pair<int, Tag>& key) {
    const auto until = Clock::now() + kSpin;
    do {
      const std::uint64_t seen = box.posts.load(std::memory_order_acquire);
      {
        const std::lock_guard<std::mutex> lock(box.mutex);
        const auto found = box.messages.find(key);
        if (found != box.messages.end()) return take(box, found);
      }
      if (!room_->spins) return std::nullopt;
      while (box.posts.load(std::memory_order_acquire) == seen) {
        if (room_->aborted || Clock::now() > until) return std::nullopt;
      }
    } while (Clock::now() < until);
    return std::nullopt;
  }

  std::shared_ptr<Room> room_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_in_process_communicators(int ranks) {
  ENSURE(ranks >= 1, "at least one rank");
  const auto room = std::make_shared<Room>(ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_unique<InProcessCommunicator>(room, rank));
  }
  return communicators;
}

}  // namespace frazil
