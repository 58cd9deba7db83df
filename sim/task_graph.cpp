#include "sim/task_graph.h"

#include <utility>

namespace frazil {

void TaskGraph::reserve(std::size_t tasks, std::size_t dependencies) {
  lane_of_.reserve(tasks);
  work_of_.reserve(tasks);
  dependencies_.reserve(dependencies);
}

LaneId TaskGraph::add_lane(DeviceId device, Lane lane) {
  lanes_.push_back({device, lane});
  return static_cast<LaneId>(lanes_.size() - 1);
}

WorkId TaskGraph::add_work(Work work) {
  works_.push_back(std::move(work));
  return static_cast<WorkId>(works_.size() - 1);
}

void TaskGraph::hold(DeviceId device, MemoryKind kind, Bytes size) {
  held_.push_back({device, kind, size});
}

}  // namespace frazil
