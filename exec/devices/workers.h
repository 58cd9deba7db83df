#pragma once
// Runs jobs on one thread per device, pinned to a core of its own while there are enough (they
// share cores otherwise), each with one intra-op thread. The threads live as long as the run; plans
// come and go.
//
// A thread cannot be killed. A worker that does not come back (an endless kernel) still uses what
// its job refers to, so nothing that the job refers to may be destroyed under it. Hence the process
// ends there and then, unless whoever owns the job knows better (WorkerOptions::on_stuck).

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "profiles/error.h"
#include "profiles/units.h"

namespace frazil {

struct WorkerOptions {
  DeviceId first{0};                         // of the devices, which follow one another
  bool pins = true;                          // each thread to a core, if there are as many
  Duration grace = std::chrono::minutes(1);  // from the first failure to the last worker's end
  // Called by run() with the sentence that names the stuck workers. If it is empty, the sentence
  // goes to standard error and the process ends with ExitCode::kPeerLost; nothing is destroyed. If
  // it returns, run() throws WorkerStuck: give one only if all that the job refers to is shared
  // with it, by std::shared_ptr, or outlives the process's threads.
  std::function<void(const std::string&)> on_stuck;
};

// Limits a job: to `time` from its beginning, and again to `time` whenever `progress` gives another
// number than `time` before, so that a wait inside the job with the same limit ends first. Time
// counts as in exec/devices/tick_count.h.
struct JobLimit {
  Duration time = std::chrono::hours(1);
  std::function<std::int64_t()> progress = {};
  // Says where a device is in its job, "step 17, action 1B3", for the sentence that names it.
  // Called by the thread that waits, while the device works.
  std::function<std::string(DeviceId)> place = {};
};

// Thrown when workers have not come back from their job and are left to themselves.
class WorkerStuck : public PeerLost {
 public:
  using PeerLost::PeerLost;
};

class Workers {
 public:
  explicit Workers(int devices, WorkerOptions options = {});
  // Waits for the threads; stuck threads are detached and end when their job does.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int devices() const;
  // Runs `job` once on every device's thread and waits for all. If some throw, `on_failure` is
  // called once, at the first failure, with its sentence (to wake the remaining ones); then the
  // first exception is thrown here. A job over the limit fails as well, with PeerLost naming the
  // ranks that have not ended. After a failure the workers serve on. After WorkerStuck they serve
  // again as soon as the stuck ones are back; until then run() throws WorkerStuck again.
  void run(const std::function<void(DeviceId)>& job,
           const std::function<void(const std::string&)>& on_failure = {},
           const JobLimit& limit = {});

 private:
  struct Shared;
  struct Round;

  void stop();
  void wait_for(Round& round, const JobLimit& limit);
  [[noreturn]] void give_up(const std::string& sentence);

  WorkerOptions options_;
  std::shared_ptr<Shared> shared_;  // with the threads, which may outlive this
  std::vector<std::thread> threads_;
};

}  // namespace frazil
