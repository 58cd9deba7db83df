#include "tests/sim/random_graph.h"

#include <algorithm>

namespace frazil {

int draw(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

RandomGraph make_random_graph(std::uint64_t seed, std::uint64_t shuffle) {
  Random random(seed);
  const int tasks = draw(random, 1, 40);
  const int lanes = draw(random, 1, 6);
  const int works = draw(random, 1, 8);
  std::vector<std::vector<int>> of_lane(static_cast<std::size_t>(lanes));
  std::vector<WorkId> work;
  std::vector<std::size_t> lane_order;
  for (int line = 0; line < tasks; ++line) {
    lane_order.push_back(static_cast<std::size_t>(draw(random, 0, lanes - 1)));
    of_lane[lane_order.back()].push_back(line);
    work.push_back(static_cast<WorkId>(draw(random, 0, works - 1)));
  }
  RandomGraph made;
  for (int lane = 0; lane < lanes; ++lane) {
    made.graph.add_lane(DeviceId{lane}, Lane::kCompute);
  }
  for (int i = 0; i < works; ++i) {
    made.graph.add_work(Fixed{});
  }

  Random shuffler(shuffle);
  std::shuffle(lane_order.begin(), lane_order.end(), shuffler);
  made.id_of.resize(static_cast<std::size_t>(tasks));
  std::vector<std::size_t> taken(static_cast<std::size_t>(lanes));
  for (const std::size_t lane : lane_order) {
    const auto line = static_cast<std::size_t>(of_lane[lane][taken[lane]++]);
    made.id_of[line] = made.graph.add_task(static_cast<LaneId>(lane), work[line]);
  }
  const int arrows = tasks < 2 ? 0 : draw(random, 0, 3 * tasks);
  for (int i = 0; i < arrows; ++i) {
    const int to = draw(random, 1, tasks - 1);
    const int from = draw(random, 0, to - 1);
    const int delay = draw(random, -1, works - 1);
    made.graph.add_dependency(made.id_of[static_cast<std::size_t>(to)],
                              made.id_of[static_cast<std::size_t>(from)],
                              delay < 0 ? kNoWork : static_cast<WorkId>(delay));
  }
  return made;
}

std::vector<Duration> random_prices(Random& random, const TaskGraph& graph) {
  std::vector<Duration> prices;
  for (std::size_t i = 0; i < graph.works().size(); ++i) {
    prices.emplace_back(draw(random, 0, 3) == 0 ? 0 : draw(random, 1, 1000));
  }
  return prices;
}

}  // namespace frazil
