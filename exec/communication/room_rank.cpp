#include "exec/communication/room_rank.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "exec/devices/tick_count.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using Clock = std::chrono::steady_clock;

// A wake-up costs tens of microseconds; messages inside a step usually come sooner than that.
constexpr auto kSpin = std::chrono::microseconds(60);

std::optional<PostedMessage> take(Mailbox& box, const MessageKey& key) {
  const auto found = box.messages.find(key);
  if (found == box.messages.end()) return std::nullopt;
  PostedMessage message = std::move(found->second);
  box.messages.erase(found);
  return message;
}

}  // namespace

RoomRank::RoomRank(std::shared_ptr<MailboxRoom> room, int rank, bool spins)
    : room_(std::move(room)),
      rank_(rank),
      spins_(spins),
      sent_(static_cast<std::size_t>(room_->ranks())),
      received_(static_cast<std::size_t>(room_->ranks())) {}

std::uint64_t& RoomRank::count(Counts& counts, int peer, const Tag& tag) {
  return counts[static_cast<std::size_t>(peer)][static_cast<std::size_t>(lane_of(tag.kind))];
}

void RoomRank::post(int peer, const Tag& tag, Tensors tensors) {
  const bool fresh =
      room_->post(peer, MessageKey(rank_, tag), {std::move(tensors), take_order(peer, tag)});
  ENSURE(fresh, "a tag names one message at a time");
  if (room_->aborted()) room_->throw_cause();
}

Tensors RoomRank::receive(int peer, const Tag& tag) {
  ENSURE(peer != rank_ && peer >= 0 && peer < room_->ranks(), "a message comes from another rank");
  if (room_->aborted()) room_->throw_cause();
  Mailbox& box = room_->mailbox(rank_);
  const MessageKey key(peer, tag);
  std::optional<PostedMessage> message = spin_for(box, key);
  if (!message) message = sleep_for(box, key);
  if (!message) room_->throw_cause();
  if (room_->options().check_order) check_order(key, message->order);
  return std::move(message->tensors);
}

std::optional<PostedMessage> RoomRank::spin_for(Mailbox& box, const MessageKey& key) {
  const auto until = Clock::now() + kSpin;
  const bool spins = spins_ && !takes_break();
  do {
    const std::uint64_t seen = box.posts.load(std::memory_order_acquire);
    {
      const std::lock_guard<std::mutex> lock(box.mutex);
      if (std::optional<PostedMessage> message = take(box, key)) {
        if (spins) break_ = 0;
        return message;
      }
    }
    if (!spins) return std::nullopt;
    while (box.posts.load(std::memory_order_acquire) == seen) {
      if (room_->aborted() || Clock::now() > until) return give_up();
      if (room_->outside().look) room_->outside().look();
    }
  } while (Clock::now() < until);
  return give_up();
}

// A spin in vain keeps a core from those that other processes need it for, so the next waits go to
// sleep at once, up to 64 of them. Ranks of one process always spin.
std::nullopt_t RoomRank::give_up() {
  if (room_->outside().look) left_of_break_ = break_ = std::clamp(2 * break_, 1, 64);
  return std::nullopt;
}

bool RoomRank::takes_break() {
  if (left_of_break_ == 0) return false;
  --left_of_break_;
  return true;
}

// Waits asleep until the message is there and takes it; none if the world is aborted.
std::optional<PostedMessage> RoomRank::sleep_for(Mailbox& box, const MessageKey& key) {
  TickCount waited(room_->deadline());
  {
    const std::lock_guard<std::mutex> lock(box.mutex);
    if (std::optional<PostedMessage> message = take(box, key)) return message;
    box.awaited = key;
  }
  room_->check_wait(rank_);
  std::unique_lock<std::mutex> lock(box.mutex);
  const auto is_over = [&] { return room_->aborted() || box.messages.contains(key); };
  while (!room_->sleep(lock, box.arrived, is_over, waited.tick())) {
    if (!waited.is_over()) continue;
    lock.unlock();
    room_->expire(rank_);
    lock.lock();
    break;
  }
  box.awaited.reset();
  return take(box, key);
}

void RoomRank::check_order(const MessageKey& key, std::uint64_t order) {
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

std::string RoomRank::find_skipped(const MessageKey& key, std::uint64_t order) {
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

}  // namespace frazil
