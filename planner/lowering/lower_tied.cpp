// Implements the part of planner/lowering/lowering_state.h on the exchanges of tied parameters.
#include "planner/lowering/lowering_state.h"

#include <algorithm>

#include "planner/lowering/reduction_memory.h"
#include "planner/plan/tied_exchanges.h"

namespace frazil {
namespace {

// Names a device's part in an exchange by the device's first use in the pipeline.
Action name_part(const TiedExchange& exchange, DeviceId device) {
  const auto use =
      std::find_if(exchange.uses.begin(), exchange.uses.end(), [&](const TiedUse& each) {
        return each.pipeline == exchange.pipeline && lies_on(each, device);
      });
  return make_stage_action(exchange.pipeline, use->stage, ActionKind::kReduceGradients);
}

void add_exchange(LoweringState& state, const TiedExchange& exchange,
                  const std::vector<TiedExchange>& all) {
  const Collective& collective = exchange.collective;
  std::vector<Action> actions;
  for (const DeviceId device : collective.devices) actions.push_back(name_part(exchange, device));
  const TaskId entry = add_collective(state, collective, actions);
  wait_for_backwards(state, collective, entry);
  for (const DeviceId device : collective.devices) {
    hold_gradients(state, device,
                   find_tied_memory(exchange, all, state.plan, state.profile, device));
  }
  for (const TiedUse& use : exchange.uses) {
    for (const DeviceId device : use.devices) {
      const TaskId update = state.tasks_of(use.pipeline, use.stage, device).update;
      if (update != kNoTask) state.wait(update, state.devices[device.index()].last_collective);
    }
  }
}

}  // namespace

void add_tied_exchanges(LoweringState& state) {
  const std::vector<TiedExchange> exchanges =
      find_tied_exchanges(state.plan, state.profile, state.activity);
  for (const TiedExchange& exchange : exchanges) add_exchange(state, exchange, exchanges);
}

}  // namespace frazil
