#pragma once
// What a process has in hand once it has joined its run: its number, a connection to every other
// process, and the control connections between the leader and all others.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/links/joining/joiners.h"

namespace frazil {

struct JoinOptions {
  ProcessFacts facts;  // of this process; join_world() fills in `attempt`
  std::optional<Secret> token;
  Duration limit = std::chrono::minutes(5);     // for all to come together
  bool begins_with_fewer = false;               // leader: at the limit, with those that have come
  Duration patience = std::chrono::seconds(5);  // of the leader with one caller
  std::filesystem::path meeting_folder;         // empty: find_meeting_folder()
  // Told where the leader listens and whom it has turned away, a sentence each. May be empty.
  std::function<void(const std::string&)> tell;
};

// A process of the run, as the leader knows it.
struct Member {
  ProcessFacts facts;
  SocketAddress address;  // where its peers reach it
  std::string name;       // "process 2 at 127.0.0.1:40312"
};

struct JoinedWorld {
  int process = 0;
  int processes = 1;  // that have come together; 0: this one has come late, and connects later
  std::uint64_t epoch = 0;
  // By process; closed where there is none (this process, lost ones).
  std::vector<PeerSockets> peers;
  // Leader: by process, closed for itself; others: [0], to the leader.
  std::vector<Descriptor> control;
  std::vector<Member> members;    // leader: by process; others: empty but for themselves
  std::unique_ptr<Joiners> door;  // none where nothing listens (a launch of one process)
  SocketAddress leader;           // others: where the leader is reached
  std::vector<Joiner> waiting;    // leader: came while all places were taken
  Secret session{};               // from which the key of all connections follows
  std::optional<Secret> token;

  bool leads() const { return process == 0; }
  bool has_come_late() const { return processes == 0; }
};

}  // namespace frazil
