#pragma once
// What it costs to go from one plan to the next between two steps, predicted: the twin of the
// executor's move_layers. A layer's state (parameters, and optimizer state where it has trained)
// goes to each device that will hold it and does not yet; what stays is not touched. A device sends
// to one device at a time and receives from one at a time, so
//   move  = the most that any device's sends, or its receives, take: sum of bytes / bandwidth,
//           rounded up by message, and a latency each
// from the holder of the layer with the fastest way there (ties: the one that has sent least so
// far, then the smaller). Before and after come times that do not depend on the plans.
// Devices that share one memory hand over for nothing what they give up; what is left is copied by
// its takers, of several the last ones, without the moments of layers that freeze, into memory that
// is touched already, as a run has it that foresaw the transition, at the rates of OneMemory:
//   move  = what is given + the longer of: the most that any device copies / alone;
//           all copies / together
//   start = what is given + the weights of a cached frozen prefix / hashed

#include <optional>
#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// What the state of layers takes within one memory, measured.
struct OneMemory {
  BytesPerSecond copied_alone;     // by one device
  BytesPerSecond copied_together;  // by all devices at once
  BytesPerSecond hashed;           // one layer after the other
  friend bool operator==(const OneMemory&, const OneMemory&) = default;
};

struct TransitionOverhead {
  Duration plan{0};                                // asking the planner
  Duration move{0};                                // telling all devices, where nothing is copied
  Duration start{0};                               // new programs and executors
  std::optional<OneMemory> memory = std::nullopt;  // where the devices share one
  friend bool operator==(const TransitionOverhead&, const TransitionOverhead&) = default;
};

struct TransitionCost {
  Bytes moved;  // over all devices
  Duration move{0};
  Duration total{0};  // move and overhead; zero where the plans place everything alike
  friend bool operator==(const TransitionCost&, const TransitionCost&) = default;
};

// `trained`: what was active until now; of a frozen layer no optimizer state is left.
TransitionCost price_transition(const Plan& from, const Plan& to, const ModelProfile& profile,
                                const Cluster& cluster, const Activity& trained,
                                const TransitionOverhead& overhead = {});

// The same among many plans: who holds what is looked up once.
class Transitions {
 public:
  // What moving each layer's state takes.
  struct StatePrices {
    struct OfLayer {
      Bytes size;
      Bytes moments;               // of it
      std::vector<Duration> over;  // by kind of link
    };
    std::vector<OfLayer> layers;
    std::vector<Duration> fastest;  // sums over the layers before, on the fastest kind of each
  };

  // All must outlive this.
  Transitions(const std::vector<Plan>& plans, const ModelProfile& profile, const Cluster& cluster);

  StatePrices price(const Activity& trained) const;
  TransitionCost predict(std::size_t from, std::size_t to, const StatePrices& prices,
                         const TransitionOverhead& overhead) const;
  // No more than the total that predict() gives: what the devices receive does not depend on who
  // gives it; within one memory nothing is said of it.
  Duration at_least(std::size_t from, std::size_t to, const StatePrices& prices,
                    const TransitionOverhead& overhead) const;

 private:
  using Holders = std::vector<std::vector<DeviceId>>;  // by layer
  // Layers [first, end) that a device takes; of one device they follow each other.
  struct Receipt {
    DeviceId taker;
    int first = 0;
    int end = 0;
  };
  struct Change {
    bool alike = false;  // no new executors
    std::vector<Receipt> receipts;
  };

  TransitionCost predict_here(std::size_t from, std::size_t to, const StatePrices& prices,
                              const TransitionOverhead& overhead) const;
  Bytes hashed(const Plan& plan) const;
  void find_links();
  Change find_change(std::size_t from, std::size_t to) const;

  const std::vector<Plan>& plans_;
  const ModelProfile& profile_;
  const Cluster& cluster_;
  std::vector<Holders> holders_;      // by plan
  std::vector<Link> links_;           // all that differ
  std::vector<std::size_t> link_at_;  // by (giver, taker)
  std::vector<Change> changes_;       // by (from, to)
};

}  // namespace frazil
