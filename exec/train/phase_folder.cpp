#include "exec/train/phase_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include "exec/disk/file_system.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStaged = ".tmp-phase-";

bool holds_only_a_phase(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!is_phase_file(entry.path().filename().string())) return false;
  }
  return !error;
}

void remove_staged(const fs::path& staged) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(staged, error)) {
    if (is_phase_file(entry.path().filename().string())) files.push_back(entry.path());
  }
  for (const fs::path& file : files) fs::remove(file, error);
  fs::remove(staged, error);
}

void refuse_what_is_no_folder(const fs::path& place) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(place, error)) || fs::is_directory(place, error)) return;
  throw InputError(place.string(), 0, "no folder", "the folder of a phase, or none");
}

}  // namespace

fs::path phase_folder(const fs::path& run, std::size_t number) {
  return run / ("phase-" + std::to_string(number));
}

bool is_phase_file(const std::string& name) {
  return std::any_of(kPhaseFiles.begin(), kPhaseFiles.end(), [&](const std::string& file) {
    return name == file || name.starts_with(file + ".tmp.");
  });
}

StagedPhase::StagedPhase(std::vector<NewFile> files, const fs::path& run, std::size_t number)
    : staged_(run / (std::string(kStaged) + std::to_string(number))),
      place_(phase_folder(run, number)) {
  refuse_what_is_no_folder(place_);
  remove_staged(staged_);
  for (NewFile& file : files) file.path = staged_ / file.path;
  try {
    write_text_files(files);
  } catch (const InputError&) {
    remove_staged(staged_);
    throw;
  }
}

StagedPhase::~StagedPhase() { remove_staged(staged_); }

void StagedPhase::put() {
  if (!swap()) move_files();
  try {
    sync_folder(real_file_system(), place_.parent_path());
  } catch (const InputError&) {
    // The files are there. A disk that syncs no folders is no reason to say that they are not.
  }
}

// Behind an exchange the files before lie where these were, and go with the object.
bool StagedPhase::swap() const {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(place_, error);
  if (!fs::exists(there)) {
    rename_file(real_file_system(), staged_, place_);
    return true;
  }
  if (!fs::is_directory(there) || !holds_only_a_phase(place_)) return false;
  return ::renameat2(AT_FDCWD, staged_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) == 0;
}

void StagedPhase::move_files() const {
  std::error_code error;
  for (const std::string name : kPhaseFiles) {
    if (fs::exists(staged_ / name, error)) {
      rename_file(real_file_system(), staged_ / name, place_ / name);
    } else {
      remove_file(real_file_system(), place_ / name);
    }
  }
}

void remove_staged_phases(const fs::path& run) {
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(run, error)) {
    if (entry.path().filename().string().starts_with(kStaged)) left.push_back(entry.path());
  }
  for (const fs::path& staged : left) remove_staged(staged);
}

}  // namespace frazil
