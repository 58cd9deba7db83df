#pragma once
// The members of a run on this machine as children of this process. They reach each other over
// pairs of sockets that they inherit: nothing listens, and nothing has a name. A child ends when
// the leader dismisses it, and when the leader is no more.

#include <sys/types.h>

#include <map>
#include <string>
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

  int count() const { return static_cast<int>(children_.size()) + 1; }
  // Hand over this process's ends, once.
  std::map<int, Descriptor> take_members() { return std::move(members_); }
  std::vector<PeerSockets> take_peers() { return std::move(peers_); }

 private:
  void start(int process, Descriptor control, std::vector<PeerSockets> peers);

  std::map<int, Descriptor> members_;  // control sockets, by process
  std::vector<PeerSockets> peers_;     // by process
  std::vector<pid_t> children_;
};

// Returns the world of a run whose devices are spread over this process and its children. They are
// told the run configuration first, and what data they must find
// (exec/train/processes/member_setup.h).
RunWorld lead(MemberProcesses& members, const TrainOptions& options, const Dataset& data,
              Transport transport);
// The same of any processes: `members` are connections to each, by its number from 1, `peers`
// sockets by process.
RunWorld lead_over(std::map<int, Descriptor> members, std::vector<PeerSockets> peers,
                   const TrainOptions& options, const Dataset& data, Transport transport);

}  // namespace frazil
