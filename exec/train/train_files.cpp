#include "exec/train/train_files.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "exec/checkpoint/run_files.h"
#include "exec/disk/kept_aside.h"
#include "exec/train/phase_folder.h"
#include "planner/plan/plan_json.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "traces/chrome_trace.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

// Beside those of phases. The log comes last: as long as it is there, a run is.
constexpr std::array kRunFiles{"trace.jsonl",      "weights.safetensors", "inputs/flags.json",
                               "inputs/run.json",  "inputs/model.json",   "inputs/cluster.json",
                               "inputs/plan.json", "inputs/masks.jsonl",  "events.jsonl"};

std::vector<NewFile> list_files(const TrainPhase& phase) {
  std::vector<NewFile> files{{"plan.json", to_json(phase.plan)},
                             {"predicted.csv", to_csv(phase.predicted)},
                             {"measured.csv", to_csv(phase.measured, phase.clock_uncertainty)}};
  if (phase.memory) files.push_back({"memory.json", to_json(*phase.memory)});
  files.push_back(
      {"trace.json", to_chrome_json({{"predicted", &phase.predicted},
                                     {"measured", &phase.measured, phase.clock_uncertainty}})});
  return files;
}

// The files and folders that an earlier run may have left.
struct Stale {
  std::vector<fs::path> files;
  std::vector<fs::path> folders;
};

// Lists later phases first: if a removal fails, those that are left still follow one another.
Stale list_stale(const TrainResult& result, const fs::path& folder) {
  std::error_code error;
  const std::size_t last = result.first_phase + result.phases.size();
  std::size_t end = last;
  while (fs::is_directory(phase_folder(folder, end), error)) ++end;
  Stale stale;
  for (std::size_t i = end; i-- > result.first_phase;) {
    const fs::path place = phase_folder(folder, i);
    if (i >= last) {
      for (const char* const name : kPhaseFiles) stale.files.push_back(place / name);
      stale.folders.push_back(place);
    } else if (!result.phases[i - result.first_phase].memory) {
      stale.files.push_back(place / "memory.json");
    }
  }
  return stale;
}

void refuse_folders(const std::vector<fs::path>& files) {
  std::error_code error;
  for (const fs::path& file : files) {
    if (!fs::is_directory(file, error)) continue;
    throw InputError(file.string(), 0, "a folder", "a file of an earlier run, or none");
  }
}

void remove_one(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (!error) return;
  fail_system(path.string(), error.value(), "", "a file of an earlier run that can be removed");
}

// Returns whether a file has a name such as "plan.json.tmp.4231.0" (profiles/text_file.h) or
// ".tmp-weights.safetensors" (exec/disk/file_system.h), which a process leaves that is killed while
// it writes.
bool is_temporary(const std::string& name) {
  const auto is_of = [&](const std::string& file) {
    return name.starts_with(file + ".tmp.") || name == ".tmp-" + file;
  };
  return std::any_of(kPhaseFiles.begin(), kPhaseFiles.end(), is_of) ||
         std::any_of(kRunFiles.begin(), kRunFiles.end(),
                     [&](const char* file) { return is_of(fs::path(file).filename().string()); });
}

void remove_temporaries(const fs::path& folder) {
  std::error_code error;
  remove_staged_phases(folder);
  std::vector<fs::path> places{folder};
  while (fs::is_directory(phase_folder(folder, places.size() - 1), error)) {
    places.push_back(phase_folder(folder, places.size() - 1));
  }
  places.push_back(folder / "inputs");
  for (const fs::path& place : places) {
    std::vector<fs::path> left;
    for (const auto& entry : fs::directory_iterator(place, error)) {
      if (is_temporary(entry.path().filename().string())) left.push_back(entry.path());
    }
    for (const fs::path& file : left) remove_one(file);
  }
}

}  // namespace

void write_phase(const TrainPhase& phase, std::size_t number, const fs::path& folder) {
  std::vector<fs::path> files{folder / "trace.jsonl"};
  for (const char* const name : kPhaseFiles) files.push_back(phase_folder(folder, number) / name);
  refuse_folders(files);
  remove_temporaries(folder);
  StagedPhase staged(list_files(phase), folder, number);
  remove_one(folder / "trace.jsonl");
  staged.put();
}

void remove_half_written(const fs::path& folder) { remove_temporaries(folder); }

void write_result(const TrainResult& result, const fs::path& folder) {
  const Stale stale = list_stale(result, folder);
  refuse_folders(stale.files);
  refuse_folders({folder / "trace.jsonl"});
  std::error_code error;
  std::deque<StagedPhase> staged;
  std::vector<NewFile> files;
  for (std::size_t i = 0; i < result.phases.size(); ++i) {
    const std::size_t number = result.first_phase + i;
    std::vector<NewFile> own = list_files(result.phases[i]);
    if (fs::is_directory(phase_folder(folder, number), error)) {
      for (NewFile& file : own) file.path = phase_folder(folder, number) / file.path;
      std::move(own.begin(), own.end(), std::back_inserter(files));
    } else {
      staged.emplace_back(std::move(own), folder, number);
    }
  }
  for (StagedPhase& phase : staged) phase.put();
  files.push_back({folder / "trace.jsonl", to_jsonl(result.trace)});
  write_text_files(files);
  for (const fs::path& file : stale.files) remove_one(file);
  for (const fs::path& place : stale.folders) {
    if (fs::is_empty(place, error)) remove_one(place);
  }
}

std::vector<fs::path> list_run_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (std::size_t i = 0; fs::is_directory(phase_folder(folder, i), error); ++i) {
    for (const char* const name : kPhaseFiles) files.push_back(phase_folder(folder, i) / name);
  }
  for (const char* const name : kRunFiles) files.push_back(folder / name);
  return files;
}

void remove_run(const fs::path& folder) {
  std::error_code error;
  remove_temporaries(folder);
  std::vector<fs::path> files = list_run_files(folder);
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints", error)) {
    if (is_written_by_run(entry.path().filename().string())) {
      files.insert(files.begin(), entry.path());
    }
  }
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name_before_aside(name) == "events.jsonl") files.insert(files.begin(), entry.path());
  }
  for (const fs::path& file : files) {
    if (fs::is_regular_file(fs::symlink_status(file, error))) remove_one(file);
  }
  std::vector<fs::path> folders{folder / "checkpoints", folder / "inputs"};
  for (std::size_t i = 0; fs::is_directory(phase_folder(folder, i), error); ++i) {
    folders.push_back(phase_folder(folder, i));
  }
  for (const fs::path& place : folders) {
    if (fs::is_directory(place, error) && fs::is_empty(place, error)) remove_one(place);
  }
}

}  // namespace frazil
