#include "exec/event_log.h"

#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

// Events hold before their step, but these, which tell of what lies before it.
bool is_before(const FreezeEvent& event, Step first) {
  const bool looks_back = std::holds_alternative<EvalEvent>(event.what) ||
                          std::holds_alternative<CheckpointEvent>(event.what);
  return event.step < first || (event.step == first && looks_back);
}

// What an earlier process has left of the run; nothing where that is not to be read.
std::vector<FreezeEvent> read_earlier(const std::filesystem::path& path, const FreezeTrace& header,
                                      Step first) {
  std::vector<FreezeEvent> events;
  try {
    std::string text = read_text_file(path);
    text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
    FreezeTrace earlier = parse_freeze_trace(text, path.string());
    if (earlier.model_hash != header.model_hash || earlier.steps != header.steps) return {};
    for (FreezeEvent& event : earlier.events) {
      if (is_before(event, first)) events.push_back(std::move(event));
    }
  } catch (const InputError&) {
    return {};
  }
  return events;
}

}  // namespace

EventLog::EventLog(std::filesystem::path path, FreezeTrace header, Step first)
    : path_(std::move(path)), blocks_(header.blocks.size()) {
  header.open = true;
  header.events.clear();
  if (first > 0) header.events = read_earlier(path_, header, first);
  write_text_file(path_, to_jsonl(header));
  file_.open(path_, std::ios::app | std::ios::binary);
  if (!file_) throw InputError(path_.string(), 0, "a file that cannot be written", "a log");
}

void EventLog::write(const FreezeEvent& event) {
  file_ << event_line(event, blocks_) << std::flush;
  if (!file_) throw InputError(path_.string(), 0, "a write that failed", "room for a line");
}

}  // namespace frazil
