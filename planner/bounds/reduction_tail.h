#pragma once
// The end of a step: what devices do together once their last backwards are through. The same
// collectives in the same order, the same waits and the same updates as planner/lowering/lower.h
// gives them, worked out without a graph.

#include <optional>
#include <vector>

#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"
#include "planner/plan/reduction_groups.h"

namespace frazil {

class ReductionTail {
 public:
  // All must outlive this. Requires: every group has micro-batches.
  ReductionTail(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups,
                const SpaceSums& sums, const Cluster& cluster, const SearchOptions& options);

  // `spare`: what the device held at most until then besides what it holds throughout.
  void set_last_work(DeviceId device, Duration end, Bytes spare) {
    ends_[device.index()].work = end;
    ends_[device.index()].spare = spare;
  }
  void set_tied(const Plan& plan, const ModelProfile& profile, const Activity& activity);

  // Of the exact tree, or the running sum: what a device holds of gradients throughout.
  Bytes gradients_on(DeviceId device) const { return ends_[device.index()].gradients; }
  // Requires: the last work of every device is set.
  Duration makespan();

  // Where a reduction takes more than was spare.
  struct Reducing {
    Duration at{0};
    Bytes size;
  };
  // Requires: the makespan is known.
  const std::optional<Reducing>& reducing_on(DeviceId device) const {
    return ends_[device.index()].reducing;
  }

 private:
  // A stage on a device, with an update.
  struct Update {
    int first_layer = 0;
    int pipeline = 0;
    int stage = 0;
    Duration time{0};
    Duration ready{0};  // its gradients are
  };
  struct DeviceEnds {
    Duration work{0};
    Duration collective{0};
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
  // A device in a reduction.
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
                    std::size_t self, Bytes held) const;
  void hold(DeviceId device, Duration at, Bytes size);
  void exchange(const TiedExchange& tied, const std::vector<Bytes>& memory);
  Update& update_of(DeviceId device, int pipeline, int stage);

  const Shape& shape_;
  const Proposal& proposal_;
  const DeviceGroups& groups_;
  const SpaceSums& space_sums_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  const ChainSums& sums_;
  int micro_batches_;
  std::vector<OnePipeline> pipelines_;
  std::vector<DeviceEnds> ends_;  // by DeviceId
  std::vector<TiedExchange> exchanges_;
  std::vector<std::vector<Bytes>> exchange_memory_;  // by device of the collective
};

}  // namespace frazil
