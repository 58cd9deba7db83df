#pragma once
// Point-to-point transfers between processes by c10d's ProcessGroupGloo, which is known to the one
// source file behind this header. Of Gloo only what libtorch itself carries is used; its headers
// come from the system and are of another revision, so a group tries itself before it is handed
// out.
//
// Rules of Gloo that its user has to know: a transfer goes through when both ends have posted it;
// what one process sends another under one tag is received in that order; a receive takes what is
// no longer than its tensor, and a longer message ends the process; traffic is neither encrypted
// nor authenticated, and Gloo listens at the given address.

#include <memory>
#include <stdexcept>
#include <string>

#include "exec/links/descriptor.h"
#include "exec/links/socket.h"
#include "exec/tensors/tensors.h"

namespace frazil {

// A connection of the group is broken, or the group cannot be had. what() is one sentence.
class GlooError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct GlooPlace {
  int process = 0;
  int processes = 1;
  std::string own_host = "127.0.0.1";  // numeric: where this process listens for its peers
  SocketAddress store = {};  // of the c10d store in which they find each other; process 0 serves it
  Descriptor listener = {};  // process 0: listens at `store`, handed to the store
  std::string name = {};     // of the group within the store: one for each
  Duration limit = std::chrono::seconds(60);  // for all to come together
};

// One send or receive under way. Its tensor stays alive as long as this.
class GlooTransfer {
 public:
  struct State;
  GlooTransfer() = default;
  explicit GlooTransfer(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Waits until it is done; false if it has been aborted. Throws GlooError if it never will be. By
  // one thread, once.
  bool wait();
  bool is_posted() const { return state_ != nullptr; }
  // Ends the wait, also one that has yet to begin. Any thread.
  void abort();

 private:
  std::shared_ptr<State> state_;
};

class GlooGroup {
 public:
  // Connects to all others, which do the same, and tries each connection. From then on this process
  // ignores SIGPIPE, unless it handles it. Throws GlooError.
  explicit GlooGroup(GlooPlace place);
  ~GlooGroup();
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  int process() const { return process_; }
  int processes() const { return processes_; }
  // Both return at once, from any thread. The elements of `tensor` lie without gaps; there is at
  // least one. Throws GlooError.
  GlooTransfer send(at::Tensor tensor, int process, int tag);
  GlooTransfer receive(at::Tensor tensor, int process, int tag);

 private:
  struct Group;
  void test();

  int process_;
  int processes_;
  std::unique_ptr<Group> group_;
};

}  // namespace frazil
