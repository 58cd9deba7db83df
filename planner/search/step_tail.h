#pragma once
// The end of a step: what devices do together once their last backwards are through. The same
// collectives in the same order, the same waits and the same updates as planner/lower.h gives them,
// worked out without a graph.

#include <map>
#include <vector>

#include "planner/reduction_groups.h"
#include "planner/search/propose.h"

namespace frazil {

class StepTail {
 public:
  // All must outlive this. Requires: every group has micro-batches.
  StepTail(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups,
           const Proposer& proposer, const Cluster& cluster, const SearchOptions& options);

  void set_last_work(DeviceId device, Duration end) { ends_[device.index()].work = end; }
  void set_tied(const std::vector<TiedExchange>& exchanges) { exchanges_ = exchanges; }

  // Of the exact tree, or the running sum: what a device holds of gradients throughout.
  Bytes gradients_on(DeviceId device) const { return ends_[device.index()].gradients; }
  // Requires: the last work of every device is set.
  Duration makespan();

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
    std::vector<Update> updates;
  };
  struct OnePipeline {
    std::vector<LayerSpan> spans;
    std::vector<DeviceId> devices;  // by stage
    MicroBatches owned;
  };

  void list_pipelines();
  void list_updates();
  void reduce(const Collective& collective);
  void reduce_layers(LayerSpan span);
  void exchange(const TiedExchange& tied);
  Update& update_of(DeviceId device, int pipeline, int stage);

  const Shape& shape_;
  const Proposal& proposal_;
  const DeviceGroups& groups_;
  const Proposer& proposer_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  const ChainSums& sums_;
  int micro_batches_;
  std::vector<OnePipeline> pipelines_;
  std::vector<DeviceEnds> ends_;  // by DeviceId
  std::vector<TiedExchange> exchanges_;
};

}  // namespace frazil
