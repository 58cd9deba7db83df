#pragma once
// A run over processes, for tests: each further process is a thread of this one with devices,
// sockets and a connection to the leader of its own, so that it shares nothing with the others but
// the model's functions. It is driven as a Run is.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/cache/prefix_cache.h"
#include "exec/links/peer_links.h"
#include "exec/run/run.h"

namespace frazil {

enum class ProcessLinks { kUnix, kTcp };

struct ProcessShape {
  std::vector<int> process_of;  // by device
  ProcessLinks links = ProcessLinks::kUnix;
  // Makes the cache of each further process; none: they have none.
  std::function<std::unique_ptr<PrefixCache>(const ModelSpec&)> make_cache = {};
};

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
  // Cuts a member off, as if its process were killed.
  void kill(int process);
  // Returns the pool of a member, between two jobs.
  const DevicePool& member_pool(int process) const;

 private:
  struct Member;
  void serve_as(Member& member);

  ModelSpec model_;
  OptimizerConfig optimizer_;
  std::uint64_t seed_;
  ProcessShape shape_;
  RunOptions options_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<PeerSockets> own_peers_;
  std::mutex shown_;  // guards the next three
  std::vector<Samples> micro_batches_;
  std::vector<std::int64_t> numbers_;
  Samples evaluated_;
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

  StepResult step(Step step, double learning_rate, const std::vector<Samples>& micro_batches,
                  bool record = false, const std::vector<double>& rate_factors = {},
                  const std::vector<std::int64_t>& sample_ids = {});
  Evaluation evaluate(const Samples& samples, int micro_batch_size);
};

}  // namespace frazil
