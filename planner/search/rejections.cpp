#include "planner/search/rejections.h"

#include <algorithm>
#include <utility>

namespace frazil {

void Rejections::add(const Shape& shape, bool single, std::int64_t candidates,
                     const Rejection& rejection) {
  RejectedShapes rejected;
  rejected.group_devices = shape.cell.devices;
  rejected.groups = shape.cell.replicas;
  rejected.longer = shape.cell.longer;
  rejected.micro_batch_size = shape.cell.micro_batch_size;
  if (single) rejected.schedule = shape.variant.named();
  rejected.recompute = single && shape.variant.recompute;
  rejected.cached = single && shape.variant.cached;
  rejected.candidates = candidates;
  rejected.rejection = rejection;
  all_.push_back(std::move(rejected));
}

void Rejections::add_bounded(const Shape& shape, bool single, std::int64_t candidates,
                             const NamedBound& bound) {
  Rejection rejection;
  rejection.why = Rejection::Why::kBound;
  rejection.bound = bound.name;
  rejection.time = bound.time;
  add(shape, single, candidates, rejection);
}

void Rejections::add_slower(const Shape& shape, Duration makespan) {
  Rejection rejection;
  rejection.why = Rejection::Why::kSlower;
  rejection.time = makespan;
  add(shape, true, 1, rejection);
}

void Rejections::take_back(const Shape& shape) {
  const auto holds = [&](const RejectedShapes& rejected) {
    const ShapeCell cell{rejected.group_devices, rejected.groups, rejected.longer,
                         rejected.micro_batch_size};
    const bool any = !rejected.schedule;
    return rejected.candidates > 0 && cell == shape.cell &&
           (any || (rejected.schedule == shape.variant.named() &&
                    rejected.recompute == shape.variant.recompute &&
                    rejected.cached == shape.variant.cached));
  };
  const auto found = std::find_if(all_.begin(), all_.end(), holds);
  if (found != all_.end()) --found->candidates;
}

std::vector<RejectedShapes> Rejections::list(Duration against) {
  std::erase_if(all_, [](const RejectedShapes& rejected) { return rejected.candidates == 0; });
  for (RejectedShapes& rejected : all_) rejected.rejection.against = against;
  return std::move(all_);
}

}  // namespace frazil
