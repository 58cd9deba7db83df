#include "exec/train/plans/plans_ahead.h"

#include <algorithm>
#include <exception>

namespace frazil {

void PlansAhead::expect(const FreezeMask& mask, std::vector<std::vector<DeviceId>> devices) {
  std::set<Question> wanted;
  for (std::vector<DeviceId>& some : devices) wanted.emplace(mask.text(), std::move(some));
  if (!jobs_) jobs_.emplace(/*in_background=*/true);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(plans_, [&](const auto& known) { return !wanted.contains(known.first); });
  for (const Question& question : wanted) {
    if (!plans_.emplace(question, std::nullopt).second) continue;
    jobs_->start([this, mask, question] { work_out(mask, question); });
  }
}

// What is asked for no more while it waits its turn is left out.
void PlansAhead::work_out(const FreezeMask& mask, const Question& question) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!plans_.contains(question)) return;
  }
  std::optional<FoundPlans> found;
  try {
    found = replanner_.find_ahead(mask, question.second);
  } catch (const std::exception&) {
    return;  // a guess ends no run: who needs the plan meets the same error and reports it
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = plans_.find(question);
  if (known != plans_.end()) known->second = std::move(found);
}

std::optional<FoundPlans> PlansAhead::find(const FreezeMask& mask,
                                           const std::vector<DeviceId>& devices) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = plans_.find({mask.text(), devices});
  return known == plans_.end() ? std::nullopt : known->second;
}

}  // namespace frazil
