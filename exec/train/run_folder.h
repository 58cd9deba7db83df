#pragma once
// RunFolder is the folder of --out in the hands of one process: while the object lives no other
// process trains in it, and a run that lies there is not replaced unless that is asked for.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "exec/disk/file_system.h"
#include "profiles/units.h"

namespace frazil {

// The run that lies in a folder.
struct FoundRun {
  bool has_ended = false;                   // all its steps are done
  bool has_checkpoints = false;             // so that it can go on
  std::optional<Step> done = std::nullopt;  // as far as its log tells
  std::optional<Step> steps = std::nullopt;
};

// Returns "an interrupted run, 35 of 60 steps done".
std::string describe(const FoundRun& run);

// Returns none if the folder holds no file of a run.
std::optional<FoundRun> find_run(const std::filesystem::path& folder);

class RunFolder {
 public:
  // Takes the lock if the folder is there; makes none. Throws InputError if another process trains
  // in it.
  explicit RunFolder(const std::filesystem::path& path);
  // Removes a folder that this object has made and that is empty.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Returns the folder as it was named, or the folder that a link of this name leads to.
  const std::filesystem::path& path() const { return path_; }
  const std::optional<FoundRun>& found() const { return found_; }

  // Throws InputError, which names the folder, what lies there and the ways on, if that is a run.
  void refuse_run() const;
  // Throws InputError unless there is a run that can go on. `is_durable`: it was begun to keep
  // checkpoints, though there may be none yet.
  void refuse_to_resume(bool is_durable) const;

  // Makes the folder if there is none, and takes its lock. Throws InputError as the constructor
  // does, and if a run has come to lie there meanwhile.
  void take();
  // Removes the files of the run that lies there, and no others. Throws InputError.
  void clear();

 private:
  void lock();

  std::filesystem::path path_;
  FileSystem files_ = real_file_system();
  std::unique_ptr<File> lock_;  // none: the folder is not there
  std::optional<FoundRun> found_;
  bool is_made_ = false;
};

}  // namespace frazil
