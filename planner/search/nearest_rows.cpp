#include "planner/search/nearest_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/search/rejections.h"

namespace frazil {
namespace {

Bytes missed_by(const RejectedShapes& shapes) {
  return shapes.rejection.needed - shapes.rejection.available;
}

// Rows of one shape and schedule are shown as one, whatever their sizes and depths.
auto row_key(const RejectedShapes& shapes) {
  return std::tuple(shapes.group_devices, shapes.groups, shapes.longer,
                    shapes.schedule ? std::optional(shapes.schedule->kind) : std::nullopt);
}

// Takes together all rejections for memory of one row. The rejection that misses least stands for
// the others, with the candidates of all. Returns the rows, those that miss least first; of equal
// ones the smaller shape comes first.
std::vector<RejectedShapes> join_rows(const std::vector<RejectedShapes>& rejected) {
  std::map<decltype(row_key(rejected.front())), RejectedShapes> least;
  for (const RejectedShapes& shapes : rejected) {
    if (shapes.rejection.why != Rejection::Why::kMemory) continue;
    const auto [own, is_first] = least.try_emplace(row_key(shapes), shapes);
    if (is_first) continue;
    const std::int64_t candidates = own->second.candidates + shapes.candidates;
    if (missed_by(shapes) < missed_by(own->second)) own->second = shapes;
    own->second.candidates = candidates;
  }
  std::vector<RejectedShapes> nearest;
  for (const auto& [key, shapes] : least) nearest.push_back(shapes);
  std::stable_sort(
      nearest.begin(), nearest.end(),
      [](const RejectedShapes& a, const RejectedShapes& b) { return missed_by(a) < missed_by(b); });
  return nearest;
}

// Returns what a plan that was simulated misses; none if it fits or is refused.
std::optional<RejectedShapes> find_miss(const Candidate& candidate) {
  const std::optional<Shape> shape = find_shape(candidate.plan);
  if (!shape || !candidate.infeasible) return std::nullopt;
  const Infeasible& infeasible = *candidate.infeasible;
  if (infeasible.needed <= infeasible.available) return std::nullopt;
  Rejection rejection;
  rejection.why = Rejection::Why::kMemory;
  rejection.device = infeasible.device;
  rejection.needed = infeasible.needed;
  rejection.available = infeasible.available;
  Rejections one;
  one.add(*shape, true, 1, rejection);
  return one.list(Duration{0}).front();
}

// Makes `named` stand for its row, which comes first. The plan is a candidate of that row already,
// or else, if the search never told its schedule from others, of the row of any schedule.
void put_first(std::vector<RejectedShapes>& rows, RejectedShapes named) {
  const auto find = [&](const RejectedShapes& wanted) {
    return std::find_if(rows.begin(), rows.end(),
                        [&](const RejectedShapes& row) { return row_key(row) == row_key(wanted); });
  };
  if (const auto own = find(named); own != rows.end()) {
    named.candidates = own->candidates;
    rows.erase(own);
  } else {
    RejectedShapes any = named;
    any.schedule = std::nullopt;
    const auto of_any = find(any);
    if (of_any != rows.end() && --of_any->candidates == 0) rows.erase(of_any);
  }
  rows.insert(rows.begin(), std::move(named));
}

}  // namespace

NearestRows list_nearest(const Ranking& ranking, const Candidate* named, std::size_t most) {
  std::vector<RejectedShapes> too_large = ranking.rejected;
  const std::optional<RejectedShapes> first = named ? find_miss(*named) : std::nullopt;
  if (first) {
    for (const Candidate& candidate : ranking.candidates) {
      if (const auto own = find_miss(candidate)) too_large.push_back(*own);
    }
  }
  NearestRows nearest{join_rows(too_large), first.has_value()};
  if (first) put_first(nearest.rows, *first);
  if (nearest.rows.size() > most) nearest.rows.resize(most);
  return nearest;
}

}  // namespace frazil
