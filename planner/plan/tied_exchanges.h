#pragma once
// Finds the gradient sums that devices exchange for tied parameters, which several layers use
// (embedding and head). After the exchange every device adds the same sums in the same order.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "sim/work.h"

namespace frazil {

// The gradient sum of one use of a tied parameter, sent to a device that lacks this sum.
struct TiedMessage {
  PipelineId pipeline;
  LayerId layer;
  DeviceId from;
  DeviceId to;

  friend bool operator==(const TiedMessage&, const TiedMessage&) = default;
};

// Lists what is sent of one parameter whose uses are `layers` (ascending). A device that holds some
// use receives the sum of every use that it holds in no pipeline. It receives that sum once, in the
// first pipeline where it holds a use; the devices of the stage with the missing use send in turn.
// Sorted by layer, pipeline and receiving device.
std::vector<TiedMessage> find_tied_messages(const Plan& plan, const std::vector<LayerId>& layers);

// A layer that uses a tied parameter and is updated.
struct TiedUse {
  PipelineId pipeline;
  LayerId layer;
  StageId stage;
  std::vector<DeviceId> devices;  // the devices of the stage that join an exchange

  friend bool operator==(const TiedUse&, const TiedUse&) = default;
};

inline bool lies_on(const TiedUse& use, DeviceId device) {
  return std::find(use.devices.begin(), use.devices.end(), device) != use.devices.end();
}

// The messages of one tied parameter in one pipeline; the devices that send or receive join the
// exchange. Each use has a copy and a gradient sum of its own, which is reduced among its owners
// like any other gradient. Then every device gets the sums of the uses that it lacks and adds all
// sums from the last layer to the first.
struct TiedExchange {
  PipelineId pipeline;
  std::size_t tied = 0;       // position in ModelProfile::tied
  std::vector<TiedUse> uses;  // on the joining devices, in all pipelines; by pipeline, layer
  std::vector<TiedMessage> messages;  // never empty
  // A gather that has the size of one sum per device and moves one sum per message. It is a partial
  // gather (sim/collective_cost.h) unless each device sends to every other device. Devices ascend.
  Collective collective;

  friend bool operator==(const TiedExchange&, const TiedExchange&) = default;
};

// Returns one exchange for each parameter and pipeline in which a sum of the parameter is sent, by
// pipeline, then in the order of the profile. Every device enters the exchanges in this order,
// after all reduction groups.
std::vector<TiedExchange> find_tied_exchanges(const Plan& plan, const ModelProfile& profile,
                                              const Activity& activity);

}  // namespace frazil
