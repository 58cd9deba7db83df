#include "exec/run/stages/weight_reads.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {

void WeightReads::begin() {
  updates_.clear();
  read_.clear();
}

const OldWeights& WeightReads::choose(const Action& forward,
                                      const OldWeights& before_newest) const {
  static const OldWeights kNone;
  if (planned_.empty()) return kNone;
  const int newest = newest_of(forward.stage);
  const int version = planned_[forward.stage.index()].read[forward.micro_batches->first.index()];
  ENSURE(version == newest || version + 1 == newest, "a version that the stage holds");
  return version == newest ? kNone : before_newest;
}

// The version follows from the weights themselves, not from the plan.
void WeightReads::note(const Action& forward, const std::vector<LayerRange>& layers,
                       const OldWeights& given) {
  if (planned_.empty()) return;
  const bool is_old = std::any_of(layers.begin(), layers.end(), [&](const LayerRange& range) {
    const auto from = given.lower_bound(range.first);
    return from != given.end() && from->first <= range.last;
  });
  read_[{forward.stage, forward.micro_batches->first}] =
      newest_of(forward.stage) - (is_old ? 1 : 0);
}

std::vector<WeightRead> WeightReads::end_group(StageId stage) {
  std::vector<WeightRead> reads;
  if (planned_.empty()) return reads;
  const std::vector<int>& group_of = planned_[stage.index()].group_of;
  const int group = updates_[stage]++;
  for (std::size_t m = 0; m < group_of.size(); ++m) {
    if (group_of[m] != group) continue;
    const MicroBatchId micro_batch{m};
    const int version = read_.at({stage, micro_batch});
    reads.push_back({stage, micro_batch, version, group - version});
  }
  return reads;
}

int WeightReads::newest_of(StageId stage) const {
  const auto done = updates_.find(stage);
  return done == updates_.end() ? 0 : done->second;
}

}  // namespace frazil
