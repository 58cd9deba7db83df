#include "sim/flows.h"

#include <limits>
#include <numeric>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr TaskId kGone = std::numeric_limits<TaskId>::max();
// The rest of a flow fits 127 bits below this limit, as denominators are up to 2^31.
constexpr WideInteger kMostWork = WideInteger{1} << 95;

}  // namespace

Flows::Flows(const Sharing& sharing) : sharing_(sharing), shares_(sharing.capacities) {}

void Flows::start(TaskId task, WorkId work, std::int64_t price, std::int64_t now) {
  if (free_.empty()) {
    free_.push_back(static_cast<FlowId>(flows_.size()));
    flows_.emplace_back();
  }
  const FlowId id = free_.back();
  free_.pop_back();
  const std::int64_t rate = sharing_.draws[work].rate;
  const WideInteger all = WideInteger{price} * rate;
  ENSURE(all < kMostWork, "a flow beyond 2^95 units");
  flows_[id] = {.task = task,
                .left = all,
                .per_ns = 0,
                .unit = 1,
                .since = now,
                .end = kNever.count(),
                .pushed = kNever.count()};
  shares_.join(id, rate, sharing_.resources_of(work));
}

void Flows::settle(std::int64_t now, EventQueue& queue) {
  for (const FlowId id : shares_.settle()) {
    Flow& flow = flows_[id];
    change_rate(flow, shares_.rate(id), now);
    if (flow.end >= flow.pushed) continue;
    flow.pushed = flow.end;
    queue.push({flow.end, flow.task, id});
  }
}

void Flows::change_rate(Flow& flow, const Rate& rate, std::int64_t now) {
  flow.left -= (now - flow.since) * flow.per_ns;
  flow.since = now;
  const std::int64_t unit = std::lcm(flow.unit, rate.per);
  if (unit <= kLargestPer) {
    flow.left *= unit / flow.unit;
    flow.unit = unit;
  } else {
    rounded_ = true;
    flow.left = flow.left / flow.unit * rate.per +
                divide_up<WideInteger>(flow.left % flow.unit * rate.per, flow.unit);
    flow.unit = rate.per;
  }
  flow.per_ns = rate.amount * (flow.unit / rate.per);
  const WideInteger rest = divide_up<WideInteger>(flow.left, flow.per_ns);
  ENSURE(rest < kNever.count() - now, "a flow that ends before 2^63 ns");
  flow.end = now + static_cast<std::int64_t>(rest);
}

bool Flows::ends(const Event& event, EventQueue& queue) {
  Flow& flow = flows_[event.what];
  if (flow.task != event.task || flow.pushed != event.time) return false;
  if (flow.end > event.time) {
    flow.pushed = flow.end;
    queue.push({flow.end, flow.task, event.what});
    return false;
  }
  shares_.leave(event.what);
  flow.task = kGone;
  free_.push_back(event.what);
  return true;
}

}  // namespace frazil
