#pragma once
// The reduction tail, which is the end of a step: reductions, exchanges of tied parameters, the
// barrier and the updates, once the last backwards are done. They are those that
// planner/lowering/lower.h makes without overlap, worked out here without a graph.

#include <optional>
#include <vector>

#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"
#include "planner/plan/reduction_groups.h"
#include "planner/plan/tied_exchanges.h"
#include "sim/received_sets.h"

namespace frazil {

// Returns how long the barrier before the updates of a step takes once all reductions are done: no
// time where it is there for clipping alone. None if a step on these groups has no barrier.
std::optional<Duration> find_update_barrier(const Shape& shape, const DeviceGroups& groups,
                                            const DeviceGroupClasses& device_classes,
                                            const Cluster& cluster, const SearchOptions& options);

class ReductionTail {
 public:
  // All must outlive this. `barrier`: what the barrier before the updates takes
  // (find_update_barrier()). Requires: every group has micro-batches.
  ReductionTail(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups,
                const SpaceSums& sums, const Cluster& cluster, const SearchOptions& options,
                std::optional<Duration> barrier);

  // Tells when a device ends its last work, counted from the start of the step. `spare` is the most
  // that the device has held until then beside parameters, gradients and optimizer state. These
  // bytes are free again when reductions begin, which raise the peak only by what they take beyond.
  void set_last_work(DeviceId device, Duration end, Bytes spare) {
    ends_[device.index()].work = end;
    ends_[device.index()].spare = spare;
  }
  // Adds the exchanges of tied parameters. Must be called before makespan().
  void set_tied(const Plan& plan, const ModelProfile& profile, const Activity& activity);

  // Returns the bytes that a device reserves for gradients: for each stage the most partial sums of
  // the exact tree that it holds at once, or one running sum.
  Bytes gradients_on(DeviceId device) const { return ends_[device.index()].gradients; }
  // Returns the makespan of the step. Requires: the last work of every device is set. May be
  // called once.
  Duration makespan();

  // A reduction that takes more than the spare bytes.
  struct Reducing {
    Duration at{0};  // its begin, since the start of the step
    Bytes size;      // what it takes beyond the gradients that the device holds
  };
  // Returns the reduction that takes the most on a device; none if all fit in its spare bytes.
  // Requires: makespan() was called.
  const std::optional<Reducing>& reducing_on(DeviceId device) const {
    return ends_[device.index()].reducing;
  }

 private:
  // The update of a stage on a device.
  struct Update {
    int first_layer = 0;
    int pipeline = 0;
    int stage = 0;
    Duration time{0};
    Duration ready{0};  // when its gradients are reduced
  };
  struct DeviceEnds {
    Duration work{0};        // end of its last work
    Duration collective{0};  // end of its last collective
    Bytes gradients;
    Bytes spare;
    std::optional<Reducing> reducing;
    std::vector<Update> updates;
  };
  struct OnePipeline {
    std::vector<LayerSpan> spans;
    std::vector<DeviceId> devices;  // by stage
    MicroBatches owned;
    int sets = 0;  // of gradients
  };
  // A device that takes part in a reduction, with what it owns in one pipeline.
  struct Owner {
    DeviceId device;
    TreeNode owned;
    int sets = 0;
  };

  void list_pipelines();
  void list_updates();
  std::vector<Owner> find_owners(int layer) const;
  Duration reduce(const Collective& collective);
  void reduce_layers(LayerSpan span);
  Bytes find_memory(const Collective& collective, const std::vector<std::vector<TreeNode>>& nodes,
                    int all, std::optional<ReceivedSets>& received, std::size_t self,
                    Bytes held) const;
  void hold(DeviceId device, Duration at, Bytes size);
  void exchange(const TiedExchange& tied, const std::vector<Bytes>& memory);
  Update& update_of(DeviceId device, int pipeline, int stage);

  const Shape& shape_;
  const Proposal& proposal_;
  const DeviceGroups& groups_;
  const SpaceSums& space_sums_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  std::optional<Duration> barrier_;
  const ChainSums& sums_;
  int micro_batches_;
  std::vector<OnePipeline> pipelines_;
  std::vector<DeviceEnds> ends_;  // by DeviceId
  std::vector<TiedExchange> exchanges_;
  std::vector<std::vector<Bytes>> exchange_memory_;  // by exchange, then by its device
};

}  // namespace frazil
