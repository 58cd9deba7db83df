#include "planner/partition/stage_load.h"

namespace frazil {

StageLoad::StageLoad(const PartGraph& graph)
    : graph_(graph), nets_of_(graph.parts.size()), pins_(graph.nets.size()) {
  for (std::size_t n = 0; n < graph.nets.size(); ++n) {
    pins_[n].all = static_cast<std::int32_t>(graph.nets[n].parts.size());
    for (const std::size_t part : graph.nets[n].parts) nets_of_[part].push_back(n);
  }
}

void StageLoad::start(const IdealLattice& lattice, std::int32_t ideal) {
  for (Pins& pins : pins_) pins = {pins.all, 0, false};
  for (std::size_t p = 0; p < graph_.parts.size(); ++p) {
    if (!lattice.holds(ideal, p)) continue;
    for (const std::size_t net : nets_of_[p]) pins_[net].is_before = true;
  }
  work_ = host_work_ = cut_ = lost_ = WorkTime{0};
  memory_ = {};
  host_only_ = 0;
}

void StageLoad::push(std::size_t part) {
  const Part& pushed = graph_.parts[part];
  work_ += pushed.load;
  host_work_ += pushed.host_load;
  memory_ += pushed.memory;
  host_only_ += pushed.runs_on_device ? 0 : 1;
  for (const std::size_t net : nets_of_[part]) {
    Pins& pins = pins_[net];
    const WorkTime transfer = graph_.nets[net].transfer;
    if (pins.here++ == 0) {
      cut_ += transfer;
      if (pins.is_before) lost_ += transfer;
    }
    if (pins.here == pins.all) cut_ -= transfer;
  }
}

void StageLoad::pop(std::size_t part) {
  const Part& popped = graph_.parts[part];
  work_ -= popped.load;
  host_work_ -= popped.host_load;
  memory_ -= popped.memory;
  host_only_ -= popped.runs_on_device ? 0 : 1;
  for (const std::size_t net : nets_of_[part]) {
    Pins& pins = pins_[net];
    const WorkTime transfer = graph_.nets[net].transfer;
    if (pins.here == pins.all) cut_ += transfer;
    if (--pins.here == 0) {
      cut_ -= transfer;
      if (pins.is_before) lost_ -= transfer;
    }
  }
}

}  // namespace frazil
