#include "planner/trajectory/remaining_bound.h"

#include <algorithm>
#include <map>

#include "planner/trajectory/far_sums.h"

namespace frazil {
namespace {

bool has_room(const CacheQuestion& question, int depth) {
  return std::any_of(question.rooms.begin(), question.rooms.end(),
                     [&](const HeldFeatures& room) { return room.depth == depth; });
}

// Maps steps of the segment to the depth that can be read from there on; later steps to deeper
// ones.
std::map<Step, int> list_readings(const CacheQuestion& question, std::size_t segment) {
  std::map<Step, int> readings;
  Step begin = 0;  // of segment j, relative to this segment's begin
  int least = question.prefix[segment];
  for (std::size_t j = segment + 1; j-- > 0;) {
    if (j < segment) begin -= question.steps[j];
    least = std::min(least, question.prefix[j]);
    const int depth = question.prefix[j];
    if (depth > least || !has_room(question, depth)) continue;
    int& deepest = readings[std::max(Step{0}, begin + question.epoch)];
    deepest = std::max(deepest, depth);
  }
  return readings;
}

}  // namespace

std::vector<std::vector<ReadableSteps>> list_readable(const CacheQuestion& question) {
  std::vector<std::vector<ReadableSteps>> readable(question.steps.size());
  for (std::size_t k = 0; k < readable.size(); ++k) {
    const Step steps = question.steps[k];
    Step begin = 0;
    int depth = 0;
    for (const auto& [from, deeper] : list_readings(question, k)) {
      if (from >= steps) break;
      if (deeper <= depth) continue;
      if (from > begin) readable[k].push_back({from - begin, depth});
      begin = from;
      depth = deeper;
    }
    readable[k].push_back({steps - begin, depth});
  }
  return readable;
}

std::vector<std::vector<RemainingBound>> find_remaining_bound(const CacheQuestion& question,
                                                              const LeastStep& step,
                                                              const CacheCosts& costs) {
  const auto readable = list_readable(question);
  const std::size_t segments = question.steps.size();
  std::vector<std::vector<RemainingBound>> rest(segments,
                                                std::vector<RemainingBound>(question.plans));
  for (std::size_t k = segments; k-- > 0;) {
    for (std::size_t plan = 0; plan < question.plans; ++plan) {
      RemainingBound& own = rest[k][plan];
      if (k + 1 < segments) own.end = rest[k + 1][plan].begin;
      for (std::size_t to = 0; k + 1 < segments && to < question.plans; ++to) {
        if (to == plan || rest[k + 1][to].begin >= own.end) continue;
        own.end = std::min(own.end, add(costs.change(k + 1, plan, to), rest[k + 1][to].begin));
      }
      own.begin = own.end;
      for (const ReadableSteps& piece : readable[k]) {
        const Duration least = step(k, plan, piece.depth);
        own.begin = least >= kFarAway ? kFarAway : add(own.begin, least * piece.steps);
      }
    }
  }
  return rest;
}

}  // namespace frazil
