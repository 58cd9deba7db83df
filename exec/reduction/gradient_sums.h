#pragma once
// GradientSums holds the gradients of the layers of one device in one step. They are added as
// micro-batches come (in a tree in mode exact, as a running sum in mode fast), reduced over the
// owners of each layer, and are then ready for the update. The sums of a tied parameter's uses are
// added from the last layer to the first, on every device that holds a use.

#include <map>
#include <set>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/measuring/memory_account.h"
#include "exec/measuring/reduction_meter.h"
#include "exec/program/step_program.h"
#include "exec/reduction/gradient_tree.h"
#include "exec/reduction/running_sum.h"
#include "exec/state/layer_state.h"

namespace frazil {

class GradientSums {
 public:
  // The references must outlive this object.
  GradientSums(const StepProgram& program, DeviceId device, const DeviceState& state,
               Communicator& communicator, MemoryAccount& memory);

  // Begins a step, in which no gradient has come yet.
  void begin(Step step);
  void add(LayerId layer, MicroBatchId micro_batch, Tensors gradients);
  // Reduces all groups of layers that this device shares with other devices; does nothing when
  // called again in the same step. Every device goes by ascending layer, so that two owners can
  // never wait for each other's later group.
  void reduce();

  // True if take(layer) is still due in this step; a layer without weight gradients has none. A
  // device that holds the layer in two pipelines has two updates, but takes the sum once.
  bool has(LayerId layer) const { return layers_.contains(layer) && !taken_.contains(layer); }
  // Returns all sums, for the gradient norm; a tied parameter appears at its first use alone, so
  // that it counts once. If devices share layers, reduce() comes first. The first of reduce(),
  // complete() and take() exchanges the sums of tied parameters with the other devices that hold
  // a use.
  std::map<LayerId, Tensors> complete();
  // Returns the sum of a layer, once in a step. In plans with weight versions (PipeDream) it
  // returns the sum of the micro-batches since the last call, and nothing is reduced.
  Tensors take(LayerId layer);

 private:
  using Layers = std::set<LayerId>;

  void reduce_group(const std::vector<LayerId>& group);
  Tensors reduce_exact_group(const std::vector<LayerId>& group, const Tensors& like, Tag tag,
                             const TellHeld& tell_held);
  Tensors reduce_fast_group(const std::vector<LayerId>& group, const Tensors& like, Tag tag,
                            const TellHeld& tell_held);
  void reserve(LayerId layer, std::size_t sets);
  Bytes reserved_of(const std::vector<LayerId>& layers);
  void finish();
  void add_uses(const TiedUses& uses);

  const StepProgram& program_;
  DeviceId device_;
  const DeviceState& state_;
  Communicator& communicator_;
  MemoryAccount& memory_;
  Layers layers_;  // of this device, with weight gradients
  bool is_exact_;
  Step step_ = 0;
  std::map<LayerId, GradientTree> trees_;
  std::map<LayerId, RunningSum> running_;
  std::map<LayerId, Tensors> sums_;  // complete
  Layers taken_;                     // layers whose sum was taken in this step
  bool reduced_ = false;
  bool finished_ = false;
};

}  // namespace frazil
