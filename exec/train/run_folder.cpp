#include "exec/train/run_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

#include "exec/checkpoint/run_files.h"
#include "exec/train/train_files.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool holds_checkpoints(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints", error)) {
    if (tells_of_run(entry.path().filename().string())) return true;
  }
  return false;
}

// Returns the folder itself where its name is a link, for no link is followed when files are
// written there.
fs::path without_link(const fs::path& path) {
  std::error_code error;
  const fs::path name = path.has_filename() ? path : path.parent_path();
  return fs::is_symlink(name, error) && fs::is_directory(name, error) ? fs::canonical(name) : path;
}

// Reads how far the run came. A log that cannot be read tells nothing.
void read_log(const fs::path& path, FoundRun& run) {
  try {
    std::string text = read_text_file(path);
    text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
    const FreezeTrace log = parse_freeze_trace(text, path.string());
    run.steps = log.steps;
    run.done = 0;
    for (const FreezeEvent& event : log.events) {
      if (std::holds_alternative<StepEvent>(event.what)) run.done = event.step + 1;
    }
  } catch (const InputError&) {
    run.done.reset();
  }
}

}  // namespace

std::string describe(const FoundRun& run) {
  const std::string kind = run.has_ended ? "a finished run" : "an interrupted run";
  if (!run.steps) return kind;
  if (run.has_ended) return kind + " of " + std::to_string(*run.steps) + " steps";
  return kind + ", " + std::to_string(run.done.value_or(0)) + " of " + std::to_string(*run.steps) +
         " steps done";
}

std::optional<FoundRun> find_run(const fs::path& folder) {
  const bool has_checkpoints = holds_checkpoints(folder);
  const std::vector<fs::path> files = list_run_files(folder);
  // Inputs are written before the flags, which come last: until then no run is there.
  const bool is_there = std::any_of(files.begin(), files.end(), [](const fs::path& file) {
    const bool is_input = file.parent_path().filename() == "inputs";
    return is_file(file) && (!is_input || file.filename() == "flags.json");
  });
  if (!is_there && !has_checkpoints) return std::nullopt;
  FoundRun run{.has_ended = is_file(folder / "trace.jsonl"), .has_checkpoints = has_checkpoints};
  read_log(folder / "events.jsonl", run);
  return run;
}

RunFolder::RunFolder(const fs::path& path) : path_(without_link(path)) {
  lock();
  if (lock_) found_ = find_run(path_);
}

RunFolder::~RunFolder() {
  std::error_code error;
  if (is_made_ && fs::is_empty(path_, error)) fs::remove(path_, error);
}

void RunFolder::lock() {
  std::error_code error;
  if (!fs::is_directory(path_, error)) return;
  auto lock = std::make_unique<File>(files_, path_, O_RDONLY | O_DIRECTORY);
  if (!lock->try_lock()) {
    throw InputError(path_.string(), 0, "a folder in which another process trains",
                     "another folder, or the end of that process");
  }
  lock_ = std::move(lock);
}

void RunFolder::refuse_run() const {
  if (!found_) return;
  const std::string resume = !found_->has_checkpoints ? ""
                             : found_->has_ended ? "--resume with --steps to give it more steps, "
                                                 : "--resume to go on with it, ";
  const std::string why =
      found_->has_checkpoints ? "" : " (it kept no checkpoint, so --resume cannot go on with it)";
  throw InputError(path_.string(), 0, describe(*found_),
                   resume + "--force to replace it, or another folder" + why);
}

void RunFolder::refuse_to_resume(bool is_durable) const {
  const std::string expected = "the folder of a run that keeps checkpoints, to go on with it";
  if (!lock_) throw InputError(path_.string(), 0, "no such folder", expected);
  if (!found_) throw InputError(path_.string(), 0, "a folder without a run", expected);
  if (found_->has_checkpoints || is_durable) return;
  throw InputError(path_.string(), 0, describe(*found_) + " without checkpoints",
                   "one that was begun with --checkpoint-every, to go on with it");
}

void RunFolder::take() {
  if (lock_) return;
  std::error_code error;
  is_made_ = fs::create_directories(path_, error);
  if (error) fail_system(path_.string(), error.value(), "", "a folder");
  lock();
  found_ = find_run(path_);
  refuse_run();
}

void RunFolder::clear() {
  if (found_) remove_run(path_);
  found_.reset();
}

}  // namespace frazil
