#pragma once
// The door of a process: listens, challenges whoever connects, and hands over those who prove that
// they belong to the run. It stays open while the run goes on, so that new members may come at any
// time. Nobody outside can hold it up: callers are served side by side, each for a few seconds at
// most and with messages of a few kilobytes, and a refused one costs a sentence.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/links/joining/join_channel.h"

namespace frazil {

struct JoinTerms {
  ProcessFacts own = {};
  std::optional<Secret> token = {};  // none: nobody proves anything
  bool leads = false;  // only a leader lets processes join; others have peers that dial
  Duration patience = std::chrono::seconds(5);  // for one caller, from connecting to its message
};

// A process that may join. The leader answers it by welcome() or refuse().
struct Joiner {
  ProcessFacts facts = {};
  std::optional<int> asked = {};  // the number that its launcher gave it
  SocketAddress address = {};     // where its peers reach it
  std::string name = {};          // "the process at 127.0.0.1:40312"
  Descriptor socket = {};         // its control connection
  Secret listener_nonce{};
  Secret caller_nonce{};
};

// A peer's connection, proved and ready for use.
struct PeerCall {
  int from = 0;
  LinkSocket link = LinkSocket::kSteps;
  Descriptor socket;
};

// What has come since the last look.
struct Arrivals {
  std::vector<Joiner> joiners;
  std::vector<PeerCall> calls;
  // A sentence for each caller that was turned away, and one when callers cannot be let in.
  std::vector<std::string> refused;

  bool empty() const { return joiners.empty() && calls.empty() && refused.empty(); }
};

class Joiners {
 public:
  // Takes over a listening socket.
  Joiners(Descriptor listener, JoinTerms terms);

  SocketAddress address() const { return address_of(listener_); }
  // From now on takes calls of peers to this process that belong to this epoch of the run. Before,
  // peers wait at the socket, and a caller that dials is refused.
  void admit_peers(int process, std::uint64_t epoch, const Secret& key);
  // Serves all callers as far as they have come. Never waits.
  Arrivals accept_ready();
  // Does so until anything has arrived, at most for `limit`, and not once the descriptor `waker`
  // has something to read.
  Arrivals wait(Duration limit, int waker = -1);

 private:
  struct Caller {
    Descriptor socket;
    std::string name;
    std::string host;
    JoinClock::time_point until;
    Secret nonce{};
    JoinReader reader{kMostCallerBytes};
  };
  struct Peers {
    int process = 0;
    std::uint64_t epoch = 0;
    Secret key{};
  };

  void accept_callers(Arrivals& arrivals);
  // Returns true if the caller's business here is done.
  bool serve(Caller& caller, Arrivals& arrivals);
  void hear(Caller& caller, Arrivals& arrivals);
  void hear_hello(Caller& caller, const Hello& hello, Arrivals& arrivals);
  void hear_dial(Caller& caller, const Dial& dial, Arrivals& arrivals);
  static void turn_away(Caller& caller, const std::string& what, Arrivals& arrivals);
  std::optional<std::string> find_objection(const Caller& caller, const Hello& hello) const;

  Descriptor listener_;
  JoinTerms terms_;
  std::optional<Peers> peers_;
  std::vector<Caller> callers_;
  JoinClock::time_point accepts_from_{};  // callers wait at the socket until then
  bool has_told_ = false;                 // that no descriptor is free for them
};

// Answers a joiner, whose socket then carries whatever the run's control says. Throws PeerLost if
// it has gone.
void welcome(Joiner& joiner, Welcome words, const std::optional<Secret>& token);
// Turns it away with "the process at 127.0.0.1:40312 " and what follows.
void refuse(Joiner& joiner, const std::string& what);

// Returns what keeps `other` from a run of `own`: "has another run (..., expected ...)"; none if
// nothing does.
std::optional<std::string> find_difference(const ProcessFacts& own, const ProcessFacts& other);

}  // namespace frazil
