#include "sim/stalemate.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace frazil {
namespace {

constexpr std::size_t kNamed = 6;

std::string describe_circle(std::vector<TaskId> circle,
                            const std::function<std::string(TaskId)>& name_of) {
  std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
  std::string sentence = "deadlock: " + name_of(circle[0]);
  for (std::size_t i = 1; i < std::min(circle.size(), kNamed); ++i) {
    sentence += " waits for " + name_of(circle[i]);
  }
  if (circle.size() > kNamed) {
    sentence += fmt::format(" waits for {} more", circle.size() - kNamed);
  }
  return sentence + " waits for " + name_of(circle[0]);
}

std::string describe_starvation(std::span<const TaskId> held_up,
                                const std::function<Obstacle(TaskId)>& obstacle_of,
                                const std::function<std::string(TaskId)>& name_of) {
  std::string sentence = "starvation";
  std::size_t starving = 0;
  for (const TaskId task : held_up) {
    const Obstacle obstacle = obstacle_of(task);
    const Lack* const lack = std::get_if<Lack>(&obstacle);
    if (lack == nullptr || ++starving > kNamed) continue;
    sentence += fmt::format("{} {} waits for {} bytes on device {}, where {} are free",
                            starving == 1 ? ":" : ";", name_of(task), lack->needed,
                            lack->device.value, lack->room);
  }
  if (starving > kNamed) sentence += fmt::format("; so do {} more", starving - kNamed);
  return sentence;
}

}  // namespace

std::string describe_stalemate(std::span<const TaskId> held_up,
                               const std::function<Obstacle(TaskId)>& obstacle_of,
                               const std::function<std::string(TaskId)>& name_of) {
  std::vector<TaskId> way = {held_up.front()};
  for (;;) {
    const Obstacle obstacle = obstacle_of(way.back());
    const TaskId* const next = std::get_if<TaskId>(&obstacle);
    if (next == nullptr) return describe_starvation(held_up, obstacle_of, name_of);
    const auto seen = std::find(way.begin(), way.end(), *next);
    if (seen != way.end()) return describe_circle({seen, way.end()}, name_of);
    way.push_back(*next);
  }
}

}  // namespace frazil
