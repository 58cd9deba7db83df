#pragma once
// One rank's part of a training, over whatever communicator it is given: ranks need not share a
// process. A step is called by the thread that works for the rank's device.

#include <cstdint>
#include <map>
#include <vector>

#include "exec/run/executor.h"

namespace frazil {

class RankTraining {
 public:
  // Holds the start values of the layers that the program gives the rank. The references must
  // outlive this.
  RankTraining(const ModelSpec& model, const OptimizerConfig& optimizer, std::uint64_t seed,
               const StepProgram& program, Communicator& communicator,
               const ComputeDevice& device = {});

  // Runs one step over the global micro-batches and returns the losses seen here, added up.
  double step(Step step, double learning_rate, const std::vector<Samples>& micro_batches);
  // Returns the hash of every layer held here: weights, moments and update count.
  std::map<LayerId, std::uint64_t> hashes() const { return hashes_of(state_); }

  static std::map<LayerId, std::uint64_t> hashes_of(const DeviceState& state);

 private:
  std::uint64_t seed_;
  DeviceState state_;
  Recorder recorder_;
  Measurement measurement_;
  Executor executor_;
};

}  // namespace frazil
