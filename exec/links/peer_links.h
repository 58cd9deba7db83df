#pragma once
// The links of this process to all others of a run: to each a socket for what steps wait for and
// one for bulk, so that a large reduction delays no activation. They outlive worlds: each epoch is
// one world, and frames of another epoch are dropped and counted. Sending never waits; one thread,
// asleep unless a socket is full, writes what is left. There is no thread for reading: who waits
// reads, for all.
//
// Large tensors are lent where the receiver can read this process's memory, which is found out when
// links begin: only their address is sent, and they are held until the receiver says that it has
// read them. Lent memory is freed only after the sockets are shut, and a reader that finds them
// open after reading has read what was lent.

#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/links/alarm.h"
#include "exec/links/epoch_frames.h"
#include "exec/links/frame.h"
#include "exec/links/peer_sockets.h"
#include "exec/links/reader_role.h"
#include "exec/links/tensor_pool.h"
#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

struct LinkPeer;

struct LinkOptions {
  // Per process: bytes that are sent but neither written to the socket nor, if lent, read. Over it
  // has_credit() says no.
  std::int64_t credit_bytes = std::int64_t{1} << 30;
  bool lends = true;                           // where the system allows it
  std::int64_t least_lent_bytes = 256 * 1024;  // of one tensor
  std::int64_t most_pooled_bytes = std::int64_t{1} << 29;
  bool checks_transfers = false;              // checksums of the tensors' bytes as well
  Duration linger = std::chrono::seconds(1);  // for what is unsent when the links end
};

struct LinkCounts {
  std::uint64_t stale_frames = 0;  // of another epoch than the newest
  std::uint64_t lent_tensors = 0;
  std::uint64_t lent_bytes = 0;
  std::uint64_t queued_frames = 0;  // that a socket did not take at once
};

class PeerLinks {
 public:
  // Sockets by process, closed for the own one and for those that are gone. Throws what
  // start_thread() throws.
  PeerLinks(std::vector<PeerSockets> by_process, LinkOptions options = {});
  // Requires: nobody waits. Writes what is unsent, for `linger` at most, then closes the sockets.
  ~PeerLinks();
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;

  int processes() const { return static_cast<int>(peers_.size()); }
  const LinkOptions& options() const { return options_; }
  LinkCounts counts() const;
  // Whether large tensors go to this process as loans; false until it has answered the greeting.
  bool lends_to(int process) const;
  // Whether this process has let others of its user read its memory where Yama forbids that, which
  // it does for peers that share sockets of this machine with it.
  bool is_readable() const { return is_readable_; }

  // Begins an epoch; the worlds before get nothing more. Gives `world` what has come for it
  // already, and the losses so far. Requires: `epoch` is higher than any before.
  void open(std::uint32_t epoch, LinkWorld world);
  // Begins links to a process that has come, in place of those to the one that had its number
  // before. Requires: no world is in force that has the process, and none of before is waited in.
  void connect(int process, PeerSockets sockets);
  // Closes the links to a process that somebody else has found lost. Any thread.
  void lose(int process, const std::string& why = "does not answer");

  // Sends a frame, whose tensors are described here. Dropped if the process is lost. Any thread.
  void send(int process, LinkSocket socket, FrameHead head, Tensors tensors = {});
  // True if a message of so many bytes may be sent now. One that is larger than all credit may be
  // sent when nothing else is under way.
  bool has_credit(int process, std::int64_t bytes) const;

  // Reads what has come, without waiting, unless somebody reads anyway. Any thread.
  void look();
  // Reads or sleeps until is_over(), which is asked with `mutex` locked, or for `limit`; returns
  // is_over(). Whoever makes it true afterwards notifies `wake` and calls nudge().
  bool wait(std::mutex& mutex, std::condition_variable& wake, const std::function<bool()>& is_over,
            Duration limit);
  // As wait(), until there is credit or stop().
  bool wait_for_credit(int process, std::int64_t bytes, const std::function<bool()>& stop,
                       Duration limit);
  // Makes the thread that reads ask whether its wait is over. Holds no lock for that.
  void nudge();

 private:
  using Clock = std::chrono::steady_clock;

  void greet(int process);
  void let_read(const PeerSockets& sockets);
  void lend(LinkPeer& peer, FrameHead& head, Tensors& tensors);
  bool write_some(std::vector<pollfd>& full);
  void write_on();
  void read_ready(Duration limit);
  void read_from(int process, LinkSocket socket);
  void take_frame(int process, LinkSocket socket, FrameHead&& head, Tensors&& tensors);
  bool take_own(int process, FrameHead& head);
  bool borrow(LinkPeer& peer, LinkSocket socket, FrameHead& head, Tensors& tensors);
  void drop(LinkPeer& peer);
  void free_credit();
  bool read_until(std::mutex& mutex, const std::function<bool()>& is_over, Clock::time_point until);
  void finish_sending();

  LinkOptions options_;
  TensorPool pool_;
  std::vector<std::unique_ptr<LinkPeer>> peers_;
  std::mutex exchanging_;  // held while the writer goes through peers, and while one is replaced
  std::string mark_;       // by which others recognise this process's memory
  std::atomic<bool> is_readable_{false};

  ReaderRole reading_;
  Alarm alarm_;  // wakes the reader
  std::atomic<bool> is_polling_{false};

  mutable std::mutex credit_mutex_;
  std::condition_variable credit_freed_;

  std::mutex world_mutex_;  // guards the next one, and is held while a world takes a frame
  EpochFrames frames_;

  std::atomic<std::uint64_t> lent_{0};
  std::atomic<std::uint64_t> lent_bytes_{0};
  std::atomic<std::uint64_t> queued_{0};

  Alarm writer_alarm_;
  std::atomic<bool> is_ending_{false};
  std::thread writer_;
};

}  // namespace frazil
