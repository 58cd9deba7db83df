#include "sim/memory_room.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "profiles/error.h"

namespace frazil {
namespace {

// Unlimited room is half of what fits, so that memory given back does not overflow it.
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 2;

std::vector<std::int64_t> find_room(const TaskGraph& graph, std::span<const Bytes> limits) {
  std::vector<std::int64_t> room;
  const auto at = [&](DeviceId device) -> std::int64_t& {
    if (device.index() >= room.size()) room.resize(device.index() + 1, kUnlimited);
    return room[device.index()];
  };
  for (std::size_t device = 0; device < limits.size(); ++device) {
    at(DeviceId{device}) = limits[device].count;
  }
  for (const MemoryChange& change : graph.memory_changes()) at(change.device);
  for (const TaskGraph::Held& held : graph.held()) at(held.device) -= held.size.count;
  for (std::size_t device = 0; device < room.size(); ++device) {
    if (room[device] >= 0) continue;
    throw InfeasibleError(
        fmt::format("device {} holds {} bytes from the start, more than its limit of {}", device,
                    limits[device].count - room[device], limits[device].count));
  }
  return room;
}

// Adds one need per device from the changes of one task at its start and at its end.
void add_needs(std::span<const MemoryChange> sorted, std::vector<MemoryNeeds::Need>& needs) {
  for (auto change = sorted.begin(); change != sorted.end();) {
    MemoryNeeds::Need need{.device = change->device};
    std::int64_t after = 0;
    for (; change != sorted.end() && change->device == need.device; ++change) {
      after += change->delta;
      if (change->when == MemoryChange::When::kStart) need.at_start += change->delta;
    }
    need.at_start = std::max(need.at_start, after);
    need.at_end = after - need.at_start;
    if (need.at_start != 0 || need.at_end != 0) needs.push_back(need);
  }
}

}  // namespace

MemoryNeeds find_memory_needs(const TaskGraph& graph, std::span<const Bytes> limits) {
  MemoryNeeds found;
  found.room = find_room(graph, limits);
  std::vector<MemoryChange> sorted = graph.memory_changes();
  std::stable_sort(sorted.begin(), sorted.end(), [](const MemoryChange& a, const MemoryChange& b) {
    return std::tie(a.task, a.device) < std::tie(b.task, b.device);
  });
  found.first.reserve(graph.size() + 1);
  auto change = sorted.begin();
  for (TaskId task = 0; task < graph.size(); ++task) {
    found.first.push_back(static_cast<std::uint32_t>(found.needs.size()));
    const auto begin = change;
    while (change != sorted.end() && change->task == task) ++change;
    add_needs({begin, change}, found.needs);
  }
  ENSURE(change == sorted.end(), "a memory change names an unknown task");
  found.first.push_back(static_cast<std::uint32_t>(found.needs.size()));
  return found;
}

const MemoryNeeds::Need* MemoryRoom::find_lack(TaskId task) const {
  for (const MemoryNeeds::Need& need : needs_.of(task)) {
    if (need.at_start > 0 && need.at_start > room_[need.device.index()]) return &need;
  }
  return nullptr;
}

void MemoryRoom::start(TaskId task) {
  for (const MemoryNeeds::Need& need : needs_.of(task)) room_[need.device.index()] -= need.at_start;
}

void MemoryRoom::end(TaskId task) {
  for (const MemoryNeeds::Need& need : needs_.of(task)) room_[need.device.index()] -= need.at_end;
}

}  // namespace frazil
