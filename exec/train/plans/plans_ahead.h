#pragma once
// Plans for the devices that a run may have next: without those of each process that may be lost,
// and with those of processes that are about to come. They are worked out by a thread of their own
// while steps run, so that a loss takes a plan that is ready.

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/devices/background_jobs.h"
#include "exec/train/plans/replanner.h"

namespace frazil {

class PlansAhead {
 public:
  // `replanner` must outlive this object.
  explicit PlansAhead(const Replanner& replanner) : replanner_(replanner) {}

  // Begins to work out the plans for this mask on each of these lists of devices, as far as that
  // has not begun before, and forgets all others. Never waits.
  void expect(const FreezeMask& mask, std::vector<std::vector<DeviceId>> devices);
  // Returns what has been found; none if nothing fits or it is not ready. Never waits.
  std::optional<FoundPlans> find(const FreezeMask& mask, const std::vector<DeviceId>& devices);

 private:
  using Question = std::pair<std::string, std::vector<DeviceId>>;  // mask and devices
  void work_out(const FreezeMask& mask, const Question& question);

  const Replanner& replanner_;
  std::mutex mutex_;  // guards the next one
  std::map<Question, std::optional<FoundPlans>> plans_;
  std::optional<BackgroundJobs>
      jobs_;  // from the first question on; last: it uses the members above
};

}  // namespace frazil
