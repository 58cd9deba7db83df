#include "exec/cache/batch_sizes.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {

BatchSizes::Choice BatchSizes::choose(const Work& work, std::int64_t rows) const {
  ENSURE(rows > 0 && rows <= work.whole, "some rows of the micro-batch");
  if (!are_exact_) return {rows, true};
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = trials_.find(work);
  if (found == trials_.end()) return {rows, rows == work.whole};
  const Trials& trials = found->second;
  const std::int64_t size = std::min(work.whole, std::max(rows, trials.largest_unequal + 1));
  const auto equal = trials.equal.find(size);
  const bool is_tried = equal != trials.equal.end() && equal->second >= kTrials;
  return {size, size == work.whole || is_tried};
}

// A size that gave equal bits so far is not trusted if a larger one gave others. There equality is
// luck: a layer's last values go through other instructions than the rest, as in a sigmoid of a few
// numbers a sample.
void BatchSizes::note(const Work& work, std::int64_t rows, bool same_bits) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Trials& trials = trials_[work];
  if (same_bits) {
    ++trials.equal[rows];
  } else {
    trials.largest_unequal = std::max(trials.largest_unequal, rows);
  }
}

}  // namespace frazil
