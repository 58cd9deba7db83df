#include "exec/communication/in_process_communicator.h"

#include <array>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "exec/communication/mailbox_room.h"
#include "exec/devices/tick_count.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using Clock = std::chrono::steady_clock;

// A wake-up costs tens of microseconds; messages inside a step usually come sooner than that.
constexpr auto kSpin = std::chrono::microseconds(60);

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<MailboxRoom> room, int rank)
      : room_(std::move(room)),
        rank_(rank),
        spins_(static_cast<unsigned>(size()) <= std::thread::hardware_concurrency()),
        sent_(static_cast<std::size_t>(size())),
        received_(static_cast<std::size_t>(size())) {}

  ~InProcessCommunicator() override { room_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return room_->ranks(); }

  void send(int peer, const Tag& tag, Tensors tensors) override {
    ENSURE(peer != rank_ && peer >= 0 && peer < size(), "a message goes to another rank");
    Mailbox& box = room_->mailbox(peer);
    PostedMessage message{std::move(tensors), count(sent_, peer, tag)++};
    bool sleeps = false;
    {
      const std::lock_guard<std::mutex> lock(box.mutex);
      // `aborted` is read under the lock: after an abort has emptied the mailbox nothing enters it.
      if (!room_->aborted()) {
        const bool fresh =
            box.messages.try_emplace(MessageKey(rank_, tag), std::move(message)).second;
        ENSURE(fresh, "a tag names one message at a time");
      }
      box.posts.fetch_add(1, std::memory_order_release);
      sleeps = box.awaited.has_value();
    }
    if (sleeps) box.arrived.notify_one();
    if (room_->aborted()) room_->throw_cause();
  }

  Tensors receive(int peer, const Tag& tag) override {
    ENSURE(peer != rank_ && peer >= 0 && peer < size(), "a message comes from another rank");
    if (room_->aborted()) room_->throw_cause();
    Mailbox& box = room_->mailbox(rank_);
    const MessageKey key(peer, tag);
    std::optional<PostedMessage> message = spin_for(box, key);
    if (!message) message = sleep_for(box, key);
    if (!message) room_->throw_cause();
    if (room_->options().check_order) check_order(key, message->order);
    return std::move(message->tensors);
  }

  void barrier() override { room_->pass_barrier(rank_); }
  void check() override {
    if (room_->aborted()) room_->throw_cause();
  }
  void abort(const std::string& reason) override { room_->abort(reason); }
  void finish() override { room_->finish(rank_); }
  void leave() override { room_->leave(rank_); }

 private:
  // The counts of a peer by lane, on a cache line that no other rank writes to.
  struct alignas(64) LaneCounts : std::array<std::uint64_t, kMessageLanes> {};
  using Counts = std::vector<LaneCounts>;  // by peer

  static std::uint64_t& count(Counts& counts, int peer, const Tag& tag) {
    return counts[static_cast<std::size_t>(peer)][static_cast<std::size_t>(lane_of(tag.kind))];
  }

  static std::optional<PostedMessage> take(Mailbox& box, const MessageKey& key) {
    const auto found = box.messages.find(key);
    if (found == box.messages.end()) return std::nullopt;
    PostedMessage message = std::move(found->second);
    box.messages.erase(found);
    return message;
  }

  std::optional<PostedMessage> spin_for(Mailbox& box, const MessageKey& key) {
    const auto until = Clock::now() + kSpin;
    do {
      const std::uint64_t seen = box.posts.load(std::memory_order_acquire);
      {
        const std::lock_guard<std::mutex> lock(box.mutex);
        if (std::optional<PostedMessage> message = take(box, key)) return message;
      }
      if (!spins_) return std::nullopt;
      while (box.posts.load(std::memory_order_acquire) == seen) {
        if (room_->aborted() || Clock::now() > until) return std::nullopt;
      }
    } while (Clock::now() < until);
    return std::nullopt;
  }

  // Waits asleep until the message is there and takes it; none if the world is aborted.
  std::optional<PostedMessage> sleep_for(Mailbox& box, const MessageKey& key) {
    TickCount waited(room_->deadline());
    {
      const std::lock_guard<std::mutex> lock(box.mutex);
      if (std::optional<PostedMessage> message = take(box, key)) return message;
      box.awaited = key;
    }
    room_->check_wait(rank_);
    std::unique_lock<std::mutex> lock(box.mutex);
    const auto is_over = [&] { return room_->aborted() || box.messages.contains(key); };
    while (!box.arrived.wait_for(lock, waited.tick(), is_over)) {
      if (!waited.is_over()) continue;
      lock.unlock();
      room_->expire(rank_);
      lock.lock();
      break;
    }
    box.awaited.reset();
    return take(box, key);
  }

  void check_order(const MessageKey& key, std::uint64_t order) {
    const std::uint64_t next = count(received_, key.first, key.second)++;
    if (order == next) return;
    const std::string peer = "rank " + std::to_string(key.first);
    CommunicationFault fault{.kind = CommunicationFault::Kind::kOrder,
                             .rank = rank_,
                             .peer = key.first,
                             .step = key.second.step,
                             .awaited = to_text(key.second),
                             .sentence = {}};
    fault.sentence = "rank " + std::to_string(rank_) + " receives " + fault.awaited + " from " +
                     peer + " before " + find_skipped(key, next) + ", which " + peer +
                     " sends first: a deadlock under ordered communication";
    room_->fail(fault);
    room_->throw_cause();
  }

  std::string find_skipped(const MessageKey& key, std::uint64_t order) {
    Mailbox& box = room_->mailbox(rank_);
    const std::lock_guard<std::mutex> lock(box.mutex);
    for (const auto& [other, message] : box.messages) {
      if (other.first == key.first && lane_of(other.second.kind) == lane_of(key.second.kind) &&
          message.order == order) {
        return to_text(other.second);
      }
    }
    return "another message";  // dropped by an abort in this moment, whose cause is thrown instead
  }

  std::shared_ptr<MailboxRoom> room_;
  int rank_;
  bool spins_;
  Counts sent_;
  Counts received_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_in_process_communicators(
    int ranks, const CommunicatorOptions& options) {
  ENSURE(ranks >= 1, "at least one rank");
  const auto room = std::make_shared<MailboxRoom>(ranks, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_unique<InProcessCommunicator>(room, rank));
  }
  return communicators;
}

}  // namespace frazil
