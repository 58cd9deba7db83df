#pragma once
// Watches connections from a thread of its own: tells what comes over them, when one ends, and when
// nothing has come over one for long, while it says over each, every tenth of a second, that this
// process lives. Time counts as in exec/devices/tick_count.h: that this process itself was stopped
// makes nobody else late. Whoever waits for a message for a moment may read in its place.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "exec/control/control_socket.h"
#include "exec/devices/steady_time.h"
#include "profiles/units.h"

namespace frazil {

// The time of a peer's steady clock is own time + offset, give or take `uncertainty`: half of the
// shortest way there and back, and more as that gets older, since clocks drift. Clocks that cannot
// be told apart, as those of one host, are taken as one.
struct ClockOffset {
  Duration offset{0};
  Duration uncertainty{-1};  // below 0: not known

  bool is_known() const { return uncertainty >= Duration{0}; }
};

class ControlWatch {
 public:
  // All by the watching thread, or by the one that looks; `peer` is a number chosen by add().
  struct Calls {
    std::function<void(int peer, ControlMessage)> on_message;
    // Once; `why` continues "its process": "has ended". `unheard`: since it was last heard of.
    std::function<void(int peer, const std::string& why, Duration unheard)> on_end;
    std::function<void(int peer, Duration silent)> on_silence;     // once, until it is heard again
    std::function<void(int peer, Duration silent)> on_sound = {};  // it is, after that
  };

  static constexpr Duration kBeat = std::chrono::milliseconds(100);
  static constexpr Duration kSuspect = std::chrono::milliseconds(500);

  explicit ControlWatch(Calls calls);
  ~ControlWatch();
  ControlWatch(const ControlWatch&) = delete;
  ControlWatch& operator=(const ControlWatch&) = delete;

  // Watches a connection from now on. It ends if nothing comes over it for longer than patience(),
  // and if nothing has come over it at all, for a minute.
  void add(int peer, Descriptor socket);
  // Ends the connection; on_end is not called. Does nothing for a peer that is not there.
  void remove(int peer);
  // Returns false if the peer is not there or cannot be reached.
  bool send(int peer, const ControlMessage& message);
  // Sends the same to several peers; those that are not there are left out.
  void send_all(const std::set<int>& peers, const ControlMessage& message);
  void set_patience(Duration patience) { patience_.store(patience.count()); }
  Duration patience() const { return Duration{patience_.load()}; }
  ClockOffset clock_of(int peer) const;
  // Takes what comes until `holds`, or for a moment: about as long as it takes to sleep and be
  // woken. For a thread that has a core to itself. Any thread.
  void look_until(const std::function<bool()>& holds);

 private:
  struct Peer {
    explicit Peer(Descriptor descriptor) : socket(std::move(descriptor)) {}
    ControlSocket socket;
    Duration silent{0};  // this and the next three are guarded by reading_
    SteadyTime heard = std::chrono::steady_clock::now();
    bool has_spoken = false;  // a process that begins needs some time until it does
    bool is_suspect = false;
    std::int64_t last_beat_ns = -1;  // the peer's, to be answered
    std::int64_t heard_ns = -1;      // when it came
    ClockOffset clock;
    std::int64_t clock_ns = 0;  // when that was found
  };
  using Peers = std::map<int, std::shared_ptr<Peer>>;

  void watch();
  void take_ready(Duration limit);
  void look();
  void read(int number, Peer& peer);
  void note_sound(int number, Peer& peer);
  void note_beat(Peer& peer, const BeatMessage& beat);
  void beat(Peer& peer);
  void count_silence(const Peers& peers, Duration passed);
  void end(int number, const std::string& why);
  bool take_away(int number);
  Peers peers() const;
  std::shared_ptr<Peer> find(int number) const;
  void wake() const;

  Calls calls_;
  std::atomic<Duration::rep> patience_{Duration(std::chrono::minutes(10)).count()};
  std::atomic<bool> stops_{false};
  Descriptor waker_;
  Descriptor waits_;          // an epoll of the waker and all peers, each by its number
  std::mutex reading_;        // held while messages are taken and silences counted
  mutable std::mutex mutex_;  // guards the map, and the clocks
  Peers peers_;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace frazil
