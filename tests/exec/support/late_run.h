#pragma once
// A run to which processes come while it goes on, for tests: each further process is a thread of
// this one with devices, and with sockets that it is handed as a child of a leader is.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "exec/links/peer_sockets.h"
#include "exec/run/run.h"

namespace frazil {

// The processes but the leader.
class LateMembers {
 public:
  // `process_of`: by device; `begin`: those that are there at the beginning.
  LateMembers(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed,
              std::vector<int> process_of, const std::set<int>& begin);
  ~LateMembers();

  RunWorld world();
  void show(const std::vector<Samples>& micro_batches);
  // Cuts a process off, as if it were killed.
  void kill(int process);
  // A process comes, in place of one that is not there. It is taken in by Run::take_in() once
  // Run::sees_newcomers(). One that is not sound cuts itself off when it is to connect.
  void come(int process, bool is_sound = true);

 private:
  struct Member;
  Member& start(int process);
  void serve_as(Member& member);
  ConnectJob introduce(int process, std::uint32_t epoch, const std::set<int>& others);

  ModelSpec model_;
  OptimizerConfig optimizer_;
  std::uint64_t seed_;
  std::vector<int> process_of_;
  std::map<int, std::unique_ptr<Member>> members_;
  std::vector<std::unique_ptr<Member>> gone_;
  std::vector<PeerSockets> own_peers_;
  std::vector<int> coming_;
  PeerSockets own_late_;  // to the process that was introduced last
  std::mutex shown_;      // guards the next one
  std::vector<Samples> micro_batches_;
};

class LateRun : private LateMembers, public Run {
 public:
  LateRun(const ModelSpec& model, const OptimizerConfig& optimizer, std::uint64_t seed,
          const std::vector<int>& process_of, const std::set<int>& begin)
      : LateMembers(model, optimizer, seed, process_of, begin),
        Run(model, optimizer, seed, LateMembers::world()) {}

  using LateMembers::come;
  using LateMembers::kill;

  StepResult step(Step step, double learning_rate, const std::vector<Samples>& micro_batches) {
    show(micro_batches);
    return Run::step(step, learning_rate, micro_batches);
  }
};

}  // namespace frazil
