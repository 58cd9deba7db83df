#pragma once
// The load of a set of parts that grows and shrinks by one part at a time.

#include <cstdint>
#include <vector>

#include "planner/partition/ideals.h"
#include "planner/partition/part_graph.h"

namespace frazil {

class StageLoad {
 public:
  explicit StageLoad(const PartGraph& graph);

  // Begins with the empty set; the parts in `ideal` lie on other devices for good.
  void start(const IdealLattice& lattice, std::int32_t ideal);
  void push(std::size_t part);
  void pop(std::size_t part);

  WorkTime work() const { return work_; }  // on a device
  WorkTime host_work() const { return host_work_; }
  WorkTime cut() const { return cut_; }  // transfers of the nets that it cuts
  WorkTime load() const { return work_ + cut_; }
  WorkTime least() const { return work_ + lost_; }  // no set with more parts has a smaller load
  Bytes memory() const { return memory_; }
  bool runs_on_device() const { return host_only_ == 0; }

 private:
  struct Pins {
    std::int32_t all = 0;
    std::int32_t here = 0;
    bool is_before = false;  // some lie in the ideal
  };

  const PartGraph& graph_;
  std::vector<std::vector<std::size_t>> nets_of_;
  std::vector<Pins> pins_;
  WorkTime work_{0};
  WorkTime host_work_{0};
  WorkTime cut_{0};
  WorkTime lost_{0};  // of the nets that reach into the ideal
  Bytes memory_;
  int host_only_ = 0;
};

}  // namespace frazil
