#pragma once
// clang-format off
// Predicts what a transition from one plan to the next, between two steps, costs: the twin of
// exec/run/move_layers.h. The state of a layer (parameters, and optimizer state
// if it has trained) goes to each device that will hold the layer and does not yet hold it; other
// state is not touched. A device sends to one device at a time and receives from one at a time, so
//   move  = the most that any device's sends, or its receives, take: sum of bytes / bandwidth,
//           rounded up by message, and a latency each
// Each message comes from the holder of the layer with the fastest link to the receiver (ties: the
// holder that has sent least so far, then the smaller). TransitionOverhead adds times before and
// after the moves that do not depend on the plans.
// Devices that share one memory hand over without copying the state that they give up. What is left
// is copied by the devices that take it, of several takers by the last ones, without the moments of
// layers that freeze, into memory that has been touched before, as in a run that foresaw the
// transition, at the rates of OneMemory:
//   move  = overhead.move + the longer of: the most that any device copies / copied_alone;
//                                          all copies / copied_together
//   start = overhead.start + the weights of a cached frozen prefix / hashed
// clang-format on

#include <optional>
#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/setting.h"

namespace frazil {

// Measured rates at which the state of layers is copied and hashed within one memory.
struct OneMemory {
  BytesPerSecond copied_alone;     // by one device
  BytesPerSecond copied_together;  // by all devices at once
  BytesPerSecond hashed;           // one layer after another
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
  Bytes moved;  // sum over all devices
  Duration move{0};
  Duration total{0};  // move and overhead; zero where the plans place everything alike
  friend bool operator==(const TransitionCost&, const TransitionCost&) = default;
};

// Prices one transition. `trained`: what was active until then; a frozen layer has no optimizer
// state left.
TransitionCost price_transition(const Plan& from, const Plan& to, Setting setting,
                                const Activity& trained, const TransitionOverhead& overhead = {});

// Prices transitions between any two of many plans; who holds what is looked up once.
class Transitions {
 public:
  // Times to move the state of each layer.
  struct StatePrices {
    struct OfLayer {
      Bytes size;                  // moments included
      Bytes moments;               // optimizer state that is left
      std::vector<Duration> over;  // transfer time, by kind of link
    };
    std::vector<OfLayer> layers;
    std::vector<Duration> fastest;  // prefix sums over layers, each on its fastest kind of link
  };

  // The plans, the profile and the cluster must outlive this. Requires: every plan holds every
  // layer.
  Transitions(const std::vector<Plan>& plans, Setting setting);

  StatePrices price(const Activity& trained) const;
  TransitionCost predict(std::size_t from, std::size_t to, const StatePrices& prices,
                         const TransitionOverhead& overhead) const;
  // Returns a lower bound on the total that predict() gives. It counts what each device receives,
  // each layer on its fastest link, for that does not depend on who sends. Within one memory it
  // counts the overhead alone.
  Duration at_least(std::size_t from, std::size_t to, const StatePrices& prices,
                    const TransitionOverhead& overhead) const;

 private:
  using Holders = std::vector<std::vector<DeviceId>>;  // by layer
  // Layers [first, end) that a device takes; the receipts of one device stand in a row.
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
  Setting setting_;
  std::vector<Holders> holders_;      // by plan
  std::vector<Link> links_;           // the different ones
  std::vector<std::size_t> link_at_;  // index into links_, by (giver, taker)
  std::vector<Change> changes_;       // by (from, to)
};

}  // namespace frazil
