#pragma once
// The one thread of a GPU through which all calls of NCCL go, whatever number of communicators the
// GPU takes part in: two threads inside NCCL for one GPU may wait for each other for ever. It gives
// the channels their work and asks them in turn, so no wait of one holds up another.
//
// A thread cannot be killed. One that does not come back from a call of NCCL is left to itself
// after a while, with what it refers to.

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "exec/communication/nccl_channel.h"
#include "profiles/units.h"

namespace frazil {

class NcclIssuer {
 public:
  // `on_failure` is called once, by the issuing thread, with "send ... to rank 1 over NCCL: ..."
  // when something cannot be done; before that thread gives all channels up. The table must outlive
  // the process's threads.
  NcclIssuer(const NcclTable& table, std::function<void(const std::string&)> on_failure);
  // Ends all communicators: in peace if what is under way ends soon, else at once.
  ~NcclIssuer();
  NcclIssuer(const NcclIssuer&) = delete;
  NcclIssuer& operator=(const NcclIssuer&) = delete;

  // Calls from any thread; none waits.
  std::future<NcclId> make_id();
  // Begins a communicator under this number.
  void open(std::size_t channel, const NcclId& id, const NcclPlace& place, std::string peers);
  // Gives a work to an open channel.
  void post(std::size_t channel, std::shared_ptr<NcclWork> work);
  // Gives all channels up; works that are not done fail.
  void abort();

  // Waits until the work is done or has failed, at most so long. Returns whether it is over.
  bool wait(const NcclWork& work, Duration time);

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this
  std::thread thread_;
};

}  // namespace frazil
