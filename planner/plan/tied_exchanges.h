#pragma once
// What devices exchange of parameters that several layers use (embedding and head), so that each
// adds the same gradient sums in the same order.

#include <cstddef>
#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "sim/work.h"

namespace frazil {

// The sum of a use of a tied parameter on its way to a device that lacks it.
struct TiedMessage {
  PipelineId pipeline;
  LayerId layer;
  DeviceId from;
  DeviceId to;

  friend bool operator==(const TiedMessage&, const TiedMessage&) = default;
};

// What is sent of one parameter with the uses `layers` (ascending): a device that holds some use
// gets each of those that it holds in no pipeline once, in the first pipeline that it is in; there
// the devices of the stage with that use take turns. By layer, pipeline and receiving device.
std::vector<TiedMessage> find_tied_messages(const Plan& plan, const std::vector<LayerId>& layers);

// A layer that uses a tied parameter and is updated.
struct TiedUse {
  PipelineId pipeline;
  LayerId layer;
  StageId stage;
  std::vector<DeviceId> devices;  // of the stage, those that join an exchange

  friend bool operator==(const TiedUse&, const TiedUse&) = default;
};

// Each use has a copy and a gradient sum of its own, reduced among its owners like any other. Then
// every device gets the sums of the uses it lacks and adds all in layer order. One exchange is of
// what is sent in one pipeline, joined by the devices that send or receive.
struct TiedExchange {
  PipelineId pipeline;
  std::size_t tied = 0;               // position in ModelProfile::tied
  std::vector<TiedUse> uses;          // on the devices that join; by pipeline and layer
  std::vector<TiedMessage> messages;  // never none
  // A gather of as many sums as devices, one per message: in part (sim/collective_cost.h) unless
  // each device sends to every other. Devices ascending.
  Collective collective;

  friend bool operator==(const TiedExchange&, const TiedExchange&) = default;
};

// By pipeline, then in the order of the profile: the order in which every device enters them, after
// all reduction groups. One for each pipeline in which something of a parameter is sent.
std::vector<TiedExchange> find_tied_exchanges(const Plan& plan, const ModelProfile& profile,
                                              const Activity& activity);

}  // namespace frazil
