#include "analysis/check/compare_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <variant>

#include "analysis/check/hash_stream.h"

namespace frazil {
namespace {

void compare_step(const FreezeEvent& event, const StepEvent& told, const std::string& mask,
                  const StoredJournal& journal, ComparedEvents& compared) {
  const auto record = journal.records.find(event.step);
  if (record == journal.records.end()) return;
  if (std::bit_cast<std::uint64_t>(told.loss) != record->second.loss_bits) {
    compared.problems.push_back(fmt::format("step {} has the loss {}, in the journal {}",
                                            event.step, told.loss,
                                            std::bit_cast<double>(record->second.loss_bits)));
  }
  if (!mask.empty() && hash_of(mask) != record->second.mask_hash) {
    compared.problems.push_back(
        fmt::format("step {} has the mask {}, in the journal another", event.step, mask));
  }
}

void compare_saved(const CheckpointEvent& saved, const StoredJournal& journal,
                   ComparedEvents& compared) {
  if (journal.weights.contains(saved.of) || journal.lost > 0) return;
  compared.problems.push_back(
      fmt::format("it tells of a checkpoint of step {}, the journal does not", saved.of));
}

void compare_ends(const StoredJournal& journal, bool has_ended, ComparedEvents& compared) {
  const Step end = compared.end;
  if (end == journal.steps) return;
  const std::string words =
      fmt::format("it ends after {} steps, the journal after {}", end, journal.steps);
  // A step is told of before it is recorded, and a crash may come in between.
  const bool is_problem = has_ended || end > journal.steps + 1;
  (is_problem ? compared.problems : compared.notes).push_back(words);
}

}  // namespace

ComparedEvents compare_events(const FreezeTrace& log, const StoredJournal* journal,
                              bool has_ended) {
  ComparedEvents compared;
  std::string mask;
  for (const FreezeEvent& event : log.events) {
    if (const auto* decided = std::get_if<MaskEvent>(&event.what)) mask = decided->mask.text();
    if (const auto* saved = std::get_if<CheckpointEvent>(&event.what); saved && journal) {
      compare_saved(*saved, *journal, compared);
    }
    const auto* const step = std::get_if<StepEvent>(&event.what);
    if (step == nullptr) continue;
    compared.missing += static_cast<std::size_t>(std::max(event.step - compared.end, Step{0}));
    compared.end = event.step + 1;
    if (journal) compare_step(event, *step, mask, *journal, compared);
  }
  if (compared.missing > 0) {
    compared.problems.push_back(fmt::format("it has no event of {} of the steps before {}",
                                            compared.missing, compared.end));
  }
  if (journal) compare_ends(*journal, has_ended, compared);
  return compared;
}

}  // namespace frazil
