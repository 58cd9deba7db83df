#include "planner/prediction/path_shares.h"

#include <numeric>

#include "profiles/error.h"

namespace frazil {

Duration total(const PathShares& shares) {
  return std::accumulate(shares.compute.begin(), shares.compute.end(),
                         shares.transfers + shares.hops + shares.collectives + shares.overheads);
}

PathShares share_out(std::span<const PathStep> path, const LoweredStep& step,
                     const Simulation& simulation, int devices) {
  PathShares shares;
  shares.of_device.resize(static_cast<std::size_t>(devices));
  for (const PathStep& part : path) {
    ENSURE(part.task < step.graph.size(), "a path of another step");
    const TaskLane& lane = step.graph.lanes()[step.graph.lane_of()[part.task]];
    const Duration time = simulation.end[part.task] - simulation.start[part.task];
    shares.hops += part.delay;
    switch (lane.lane) {
      case Lane::kCompute:
        shares.compute[static_cast<std::size_t>(step.actions[part.task].kind)] += time;
        shares.of_device.at(lane.device.index()) += time;
        break;
      case Lane::kHost:
        shares.overheads += time;
        shares.of_device.at(lane.device.index()) += time;
        break;
      case Lane::kSend:
      case Lane::kReceive:
        shares.transfers += time;
        break;
      case Lane::kCollective:
        shares.collectives += time;
        break;
    }
  }
  return shares;
}

}  // namespace frazil
