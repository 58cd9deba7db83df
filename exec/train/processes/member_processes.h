#pragma once
// The members of a run on this machine as children of this process. They reach each other over
// pairs of sockets that they inherit: nothing listens, and nothing has a name. A child ends when
// the leader dismisses it, and when the leader is no more.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "exec/data/dataset.h"
#include "exec/links/peer_links.h"
#include "exec/run/run.h"
#include "exec/train/processes/run_world.h"
#include "exec/train/train_options.h"

namespace frazil {

class MemberProcesses {
 public:
  // Starts processes 1..processes-1 of the program frazil-member beside this program. Throws
  // InputError if it is not there or cannot be started.
  explicit MemberProcesses(int processes);
  // Gives children that have been dismissed two seconds to end, and kills the others.
  ~MemberProcesses();
  MemberProcesses(const MemberProcesses&) = delete;
  MemberProcesses& operator=(const MemberProcesses&) = delete;

  // Hand over this process's ends, once.
  std::map<int, Descriptor> take_members() { return std::exchange(controls_, {}); }
  std::vector<PeerSockets> take_peers() { return std::exchange(peers_, {}); }

  // A door through which further children come: one for each vacant place, unless three in a row
  // have ended there before they took part. Lives no longer than this.
  RunDoor door();
  // This process's sockets to those that come by that door.
  LateSockets late_sockets();

 private:
  void start(int process, std::vector<PeerSockets> peers);
  ConnectJob introduce(int process, std::uint32_t epoch, const std::set<int>& others);
  void count_arrivals(const std::set<int>& vacant);

  std::map<int, Descriptor> controls_;  // by process
  std::map<int, Descriptor> passages_;  // over which they get sockets of others, by process
  std::vector<PeerSockets> peers_;      // by process
  std::map<int, int> starts_;           // that have come to nothing so far, by process
  std::set<int> introduced_;            // since the last look for vacant places
  PeerSockets late_;                    // to the process that was introduced last
  std::vector<pid_t> children_;
};

// Returns the sockets that a child gets from its leader over `passage`.
LateSockets take_from_leader(int process, Descriptor passage);

// Returns the world of a run whose devices are spread over this process and its children. They are
// told the run configuration first, and what data they must find
// (exec/train/processes/member_setup.h). `restarts`: a new child takes the place of each that is
// lost, or has not been there yet.
RunWorld lead(MemberProcesses& members, const TrainOptions& options, const Dataset& data,
              Transport transport, bool restarts);
// The same of any processes: `members` are connections to each, by its number from 1, `peers`
// sockets by process, `late` gets sockets to those that come later.
RunWorld lead_over(std::map<int, Descriptor> members, std::vector<PeerSockets> peers,
                   const TrainOptions& options, const Dataset& data, Transport transport,
                   LateSockets late);

}  // namespace frazil
