#pragma once
// A run over processes, for tests: each further process is a thread of this one with devices,
// sockets and a connection to the leader of its own, so that it shares nothing with the others but
// the model's functions. It is driven as a Run is.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "exec/cache/prefix_cache.h"
#include "exec/links/gloo_group.h"
#include "exec/links/peer_sockets.h"
#include "exec/run/run.h"
#include "tests/exec/support/control_relay.h"

namespace frazil {

enum class ProcessLinks { kUnix, kTcp, kGloo };

struct ProcessShape {
  using Ranks = std::vector<std::unique_ptr<Communicator>>;
  // The process that asks, a message as ControlRelay names it, and whether the relay cuts there.
  using Judge = std::function<ControlRelay::Verdict(int member, const std::string& message)>;

  std::vector<int> process_of;  // by device
  ProcessLinks links = ProcessLinks::kUnix;
  // Makes the cache of each further process; none: they have none.
  std::function<std::unique_ptr<PrefixCache>(const ModelSpec&)> make_cache = {};
  // Stands between a process's communicators and its devices; none: nothing does.
  std::function<Ranks(Ranks, const CommunicatorOptions&)> between = {};
  // Carries tensors between the GPUs of different processes; null: they go through the host.
  const NcclTable* nccl = nullptr;
  // If given, a relay stands between the leader and each member, and kills `killed`, which may be
  // the leader (0), where this says so.
  Judge judge = {};
  int killed = 0;
};

// What a member holds, and in which plan, when it ends.
struct LeftState {
  Holdings holdings;
  std::optional<Plan> plan;
  std::set<std::int64_t> updates;
  bool is_sound = true;  // its devices hold what the holdings say
};

// Returns the state of the devices of a pool.
LeftState state_of(const DevicePool& pool);

// The members, as threads.
class MemberThreads {
 public:
  MemberThreads(const ModelSpec& model, const OptimizerConfig& optimizer, std::uint64_t seed,
                const ProcessShape& shape, const RunOptions& options);
  ~MemberThreads();

  RunWorld world();
  // What the next step works on, and what is evaluated next, in every process.
  void show(const std::vector<Samples>& micro_batches, const std::vector<std::int64_t>& numbers);
  void show(const Samples& samples);
  // Cuts a process off, as if it were killed. Not over Gloo, where only its leader loses a member.
  void kill(int process);
  // Waits for all members to end, and returns the states that they end with, by process. Requires:
  // the run is over or its leader is lost.
  std::map<int, LeftState> wait_for_members();
  // Returns the pool of a member, between two jobs.
  const DevicePool& member_pool(int process) const;

 private:
  struct Member;
  PoolPlace place_in(int process) const;
  RunWorld::Join join_as(int process, std::vector<PeerSockets> peers, GlooPlace gloo) const;
  void serve_as(Member& member);
  void relay(Member& member);

  ModelSpec model_;
  OptimizerConfig optimizer_;
  std::uint64_t seed_;
  ProcessShape shape_;
  RunOptions options_;
  std::vector<std::unique_ptr<Member>> members_;
  RunWorld::Join own_join_;
  std::vector<Descriptor> own_names_;  // second names of the leader's sockets
  std::mutex shown_;                   // guards the next three
  std::vector<Samples> micro_batches_;
  std::vector<std::int64_t> numbers_;
  SampleSource evaluated_;
};

class ProcessRun : private MemberThreads, public Run {
 public:
  ProcessRun(const ModelSpec& model, const OptimizerConfig& optimizer, std::uint64_t seed,
             const ProcessShape& shape, const RunOptions& options = {})
      : MemberThreads(model, optimizer, seed, shape, options),
        Run(model, optimizer, seed, MemberThreads::world(), options) {}
  // Spreads devices over processes, in another way each time: over two, or one each; over Unix
  // sockets or TCP.
  ProcessRun(const ModelSpec& model, const OptimizerConfig& optimizer, std::uint64_t seed,
             int devices, const RunOptions& options = {});

  using MemberThreads::kill;
  using MemberThreads::member_pool;
  using MemberThreads::wait_for_members;

  StepResult step(Step step, double learning_rate, const std::vector<Samples>& micro_batches,
                  bool record = false, const std::vector<double>& rate_factors = {},
                  const std::vector<std::int64_t>& sample_ids = {});
  Evaluation evaluate(const Samples& samples, int micro_batch_size);
};

}  // namespace frazil
