#pragma once
// What the ranks of a process share in a world over processes: the mailbox room, the links, and the
// settlement of a cause. Translates between frames and the room.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/communication/mailbox_room.h"
#include "exec/communication/process_place.h"
#include "exec/communication/settlement.h"

namespace frazil {

class ProcessWorld : public std::enable_shared_from_this<ProcessWorld> {
 public:
  ProcessWorld(std::shared_ptr<const WorldLinks> links, std::uint32_t epoch,
               const ProcessPlace& place, const CommunicatorOptions& options);

  // Frames come from here on, and the links to processes without a rank end. Requires: a shared
  // pointer holds this.
  void begin();

  MailboxRoom& room() { return *room_; }
  // Lives as long as this.
  std::shared_ptr<MailboxRoom> share_room() { return {shared_from_this(), room_.get()}; }
  const WorldLinks& links() const { return *links_; }
  bool is_here(int rank) const { return process_of(rank) == place_.process; }
  int process_of(int rank) const { return place_.process_of_rank[static_cast<std::size_t>(rank)]; }
  std::vector<int> own_ranks() const;
  bool spins() const;

  // Over credit it waits until there is some, the deadline, or the end of the world.
  void send(int from, int to, const Tag& tag, std::uint64_t order, Tensors tensors);
  void tell_arrival(int rank, std::uint64_t count);
  void tell_finished(int rank, std::int64_t jobs);

 private:
  RoomOutside outside();
  void leave_others_behind();
  void take(int process, FrameHead&& head, Tensors&& tensors);
  void take_message(FrameHead&& head, Tensors&& tensors);
  void take_finished(int process, int rank, std::int64_t jobs);
  void lose(int process, const std::string& why);
  void wait_for_credit(int from, int to, const Tag& tag, std::int64_t bytes);
  bool have_left(const std::vector<int>& ranks) const;
  std::vector<int> ranks_of(int process) const;

  std::shared_ptr<const WorldLinks> links_;
  std::uint32_t epoch_;
  ProcessPlace place_;
  std::set<int> others_;  // processes
  std::unique_ptr<MailboxRoom> room_;
  Settlement settlement_;
  // Of ranks elsewhere: jobs finished by what has come over each of the two sockets. Of the reader.
  std::vector<std::pair<std::int64_t, std::int64_t>> finished_;
};

}  // namespace frazil
