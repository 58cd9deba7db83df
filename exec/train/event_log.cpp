#include "exec/train/event_log.h"

#include <fcntl.h>

#include <string>
#include <system_error>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {

EventLog::EventLog(const std::filesystem::path& path, FreezeTrace header)
    : blocks_(header.blocks.size()) {
  header.open = true;
  const std::string text = to_jsonl(header);
  // write_text_file() would write the file that a link leads to.
  std::error_code error;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) {
    remove_file(files_, path);
  }
  write_text_file(path, text);
  file_.emplace(files_, path, O_WRONLY | O_APPEND);
}

void EventLog::write(const FreezeEvent& event) { file_->write(event_line(event, blocks_)); }

}  // namespace frazil
