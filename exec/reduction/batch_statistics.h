#pragma once
// The running statistics of layers (LayerSpec::statistics) change once a step: those of all its
// micro-batches are folded in, in the order of micro-batches, as old * (1 - momentum) + new *
// momentum in float32. Every owner of a layer does so with all of them, each owner handing the
// others those of its own micro-batches, so that owners keep equal bits and these do not depend on
// the plan. Statistics that a step does not move (LayerSpec::moved) stay as they are. What is
// handed on is small (two numbers of a channel for each micro-batch) and left out of the
// simulator's messages, as are the norms of clipping.
//
// Where a stage slices micro-batches by samples and each slice normalises by its own statistics
// (exec/models/local_statistics.h), those of a micro-batch are the mean over its slices, weighted
// by their samples and added in the order of slices in float32. So a running variance is the mean
// of what training has normalised by, not the variance of whole micro-batches.

#include <cstdint>
#include <map>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/models/model.h"
#include "exec/program/step_program.h"
#include "exec/state/layer_state.h"
#include "planner/plan/stage_slices.h"

namespace frazil {

// True if a layer changes its statistics under this activity: it has some, and is in training.
bool keeps_statistics(const ModelSpec& model, const Activity& activity, LayerId layer);
// True if the device owns such a layer.
bool keeps_statistics(const ModelSpec& model, const StepProgram& program, DeviceId device);

class BatchStatistics {
 public:
  // The references must outlive this object.
  BatchStatistics(const ModelSpec& model, const StepProgram& program, DeviceId device,
                  DeviceState& state, Communicator& communicator);

  // Begins the step of this key, in which nothing has come yet.
  void begin(const RandomKey& key);
  // Takes those of this device's part of a micro-batch, which a forward in training has handed out
  // (LayerCall::batch_statistics).
  void add(LayerId layer, MicroBatchId micro_batch, Tensors statistics);
  // Sends the other owners of layers what they lack and receives what this device lacks, through
  // the host; does nothing when called again in the same step. Requires: all forwards are done.
  void share();
  // Folds the statistics of a layer into its state. Requires: share() was called.
  void fold(LayerId layer);

  // Returns the layers that this device owns and that keep statistics, ascending.
  const std::vector<LayerId>& layers() const { return layers_; }
  bool has_peers() const { return !peers_.empty(); }

 private:
  // Another device, with the kept layers that both own.
  struct Peer {
    DeviceId device;
    std::vector<LayerId> layers;
  };
  // The micro-batches that a device works on, ascending.
  std::vector<MicroBatchId> micro_batches(LayerId layer, DeviceId device) const;
  at::Tensor pack(const Peer& peer) const;
  void unpack(const Peer& peer, const at::Tensor& packed);
  std::vector<bool> find_moved(LayerId layer) const;
  // Returns the parts that the layer's stage makes of a micro-batch, in the order of slices.
  std::vector<StagePart> find_parts_of(LayerId layer, MicroBatchId micro_batch) const;

  const ModelSpec& model_;
  const StepProgram& program_;
  DeviceId device_;
  DeviceState& state_;
  Communicator& communicator_;
  std::vector<LayerId> layers_;
  std::vector<Peer> peers_;  // ascending
  RandomKey key_;
  bool is_shared_ = false;
  // By layer, micro-batch and the device that works on a part of it.
  std::map<LayerId, std::map<MicroBatchId, std::map<DeviceId, Tensors>>> found_;
};

}  // namespace frazil
