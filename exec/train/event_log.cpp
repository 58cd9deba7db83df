#include "exec/train/event_log.h"

#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

// True if an event belongs before step `first`. Events hold before their step, except evaluations
// and checkpoints, which tell of what lies before it.
bool is_before(const FreezeEvent& event, Step first) {
  const bool looks_back = std::holds_alternative<EvalEvent>(event.what) ||
                          std::holds_alternative<CheckpointEvent>(event.what);
  return event.step < first || (event.step == first && looks_back);
}

// True if each step up to `end` is there, in order.
bool has_steps(const FreezeTrace& log, Step end) {
  Step next = 0;
  for (const FreezeEvent& event : log.events) {
    if (!std::holds_alternative<StepEvent>(event.what)) continue;
    if (event.step != next) return false;
    ++next;
  }
  return next == end;
}

}  // namespace

std::optional<FreezeTrace> read_earlier_log(const std::filesystem::path& path,
                                            const FreezeTrace& header, Step first) {
  try {
    std::string text = read_text_file(path);
    text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
    FreezeTrace log = parse_freeze_trace(text, path.string());
    if (log.model_hash != header.model_hash || log.steps > header.steps) return std::nullopt;
    std::erase_if(log.events, [&](const FreezeEvent& event) { return !is_before(event, first); });
    if (!has_steps(log, first)) return std::nullopt;
    return log;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

EventLog::EventLog(std::filesystem::path path, FreezeTrace header)
    : path_(std::move(path)), blocks_(header.blocks.size()) {
  header.open = true;
  write_text_file(path_, to_jsonl(header));
  file_.open(path_, std::ios::app | std::ios::binary);
  if (!file_) throw InputError(path_.string(), 0, "a file that cannot be written", "a log");
}

void EventLog::write(const FreezeEvent& event) {
  file_ << event_line(event, blocks_) << std::flush;
  if (!file_) throw InputError(path_.string(), 0, "a write that failed", "room for a line");
}

}  // namespace frazil
