#include "tests/exec/support/moved_layers.h"

#include "exec/communication/in_process_communicator.h"
#include "exec/devices/workers.h"
#include "planner/plan/plan_topology.h"

namespace frazil {

MoveReport move_layers(std::vector<DeviceState>& states, const Plan& plan, int layers) {
  Holdings held(static_cast<std::size_t>(layers));
  for (std::size_t d = 0; d < states.size(); ++d) {
    for (const auto& [layer, state] : states[d]) held.at(layer.index()).push_back(DeviceId{d});
  }
  const LayerMoves moves =
      find_moves(held, find_holding_devices(plan, static_cast<std::size_t>(layers)));
  const std::vector<bool> freezes(held.size(), false);
  Activity activity;
  activity.layers.assign(held.size(), LayerActivity{.active = true});
  auto world = make_in_process_communicators(static_cast<int>(states.size()));
  Workers workers(static_cast<int>(states.size()));
  std::vector<TakenLayers> taken(states.size());
  workers.run([&](DeviceId device) {
    taken[device.index()] = exchange_layers({.moves = moves,
                                             .device = device,
                                             .state = states[device.index()],
                                             .freezes = freezes,
                                             .is_here = [](DeviceId) { return true; },
                                             .memory = {}},
                                            *world[device.index()], 1);
  });
  MoveReport report;
  workers.run([&](DeviceId device) {
    (void)adopt_layers(moves, device, std::move(taken[device.index()].layers), activity,
                       states[device.index()]);
  });
  for (const TakenLayers& some : taken) report += some.report;
  return report;
}

}  // namespace frazil
