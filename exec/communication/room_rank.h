#pragma once
// One rank's end of a mailbox room: how it hands messages over, waits for them and checks their
// order. A waiting rank spins for a moment before it sleeps, if it may. Calls come from the rank's
// thread only.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/communication/mailbox_room.h"

namespace frazil {

class RoomRank {
 public:
  // `spins`: every rank has a core of its own.
  RoomRank(std::shared_ptr<MailboxRoom> room, int rank, bool spins);

  MailboxRoom& room() const { return *room_; }
  int rank() const { return rank_; }

  // Returns the place of the next message among those to this peer in its lane.
  std::uint64_t take_order(int peer, const Tag& tag) { return count(sent_, peer, tag)++; }
  // Hands the tensors over to a rank of this process. Throws the cause if the world is aborted.
  void post(int peer, const Tag& tag, Tensors tensors);
  // As Communicator::receive(), from any rank.
  Tensors receive(int peer, const Tag& tag);

 private:
  // The counts of a peer by lane, on a cache line that no other rank writes to.
  struct alignas(64) LaneCounts : std::array<std::uint64_t, kMessageLanes> {};
  using Counts = std::vector<LaneCounts>;  // by peer

  static std::uint64_t& count(Counts& counts, int peer, const Tag& tag);
  std::optional<PostedMessage> spin_for(Mailbox& box, const MessageKey& key);
  std::nullopt_t give_up();
  bool takes_break();
  std::optional<PostedMessage> sleep_for(Mailbox& box, const MessageKey& key);
  void check_order(const MessageKey& key, std::uint64_t order);
  std::string find_skipped(const MessageKey& key, std::uint64_t order);

  std::shared_ptr<MailboxRoom> room_;
  int rank_;
  bool spins_;
  int break_ = 0;  // waits that do not spin, after the last one that did in vain
  int left_of_break_ = 0;
  Counts sent_;
  Counts received_;
};

}  // namespace frazil
