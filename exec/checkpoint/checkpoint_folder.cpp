#include "exec/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "exec/checkpoint/run_files.h"
#include "exec/disk/hashes.h"
#include "exec/disk/kept_aside.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

std::uint64_t hash_of_weights(const std::vector<LayerState>& layers) {
  std::vector<const LayerState*> pointers;
  for (const LayerState& layer : layers) pointers.push_back(&layer);
  return hash_weights(pointers);
}

void refuse_other_weights(const fs::path& path, std::uint64_t found, std::uint64_t recorded) {
  if (found == recorded) return;
  throw InputError(path.string(), 0, "weights with the hash " + to_hex(found),
                   "those that the journal recorded, " + to_hex(recorded));
}

}  // namespace

CheckpointFolder::CheckpointFolder(const FileSystem& files, fs::path folder, const ModelSpec& model,
                                   RunIdentity run, int keep)
    : files_(files), folder_(std::move(folder)), model_(model), run_(std::move(run)), keep_(keep) {
  ENSURE(keep_ >= 1, "a checkpoint is kept");
  make_folders(files_, folder_);
  for (const std::string& name : list_folder(files_, folder_)) {
    if (name.starts_with(kHalfWritten)) remove_file(files_, folder_ / name);
  }
}

fs::path CheckpointFolder::path_of(Step step) const { return folder_ / checkpoint_name(step); }

std::vector<Step> CheckpointFolder::steps() const {
  std::vector<Step> steps;
  for (const std::string& name : list_folder(files_, folder_)) {
    if (const auto step = parse_checkpoint_name(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void CheckpointFolder::save(const TrainingPosition& position,
                            const std::vector<const LayerState*>& layers) {
  const fs::path temporary = folder_ / (std::string(kHalfWritten) + checkpoint_name(position.step));
  // A save that failed and could not be undone may have left one.
  remove_file(files_, temporary);
  keep_aside();
  write(temporary, position, layers);
  sync_folder(files_, folder_);
  good_.insert(position.step);
  prune(position.step);
}

void CheckpointFolder::write(const fs::path& temporary, const TrainingPosition& position,
                             const std::vector<const LayerState*>& layers) {
  try {
    write_checkpoint(files_, temporary, model_, run_, position, layers);
    rename_file(files_, temporary, path_of(position.step));
  } catch (const InputError&) {
    files_.unlink(temporary.string());
    throw;
  }
}

void CheckpointFolder::keep_aside() {
  for (auto step = damaged_.begin(); step != damaged_.end(); step = damaged_.erase(step)) {
    const fs::path path = path_of(*step);
    if (is_in_folder(files_, path)) move_aside(files_, path);
  }
}

bool CheckpointFolder::holds(Step step) {
  if (good_.contains(step)) return true;
  try {
    (void)read_checkpoint(files_, path_of(step), model_, run_);
  } catch (const InputError&) {
    return false;
  }
  good_.insert(step);
  return true;
}

// Checkpoints of later steps are left: a run that went back will come to them.
void CheckpointFolder::prune(Step newest) {
  try {
    const std::vector<Step> all = steps();
    if (static_cast<int>(all.size()) <= keep_) return;
    int kept = 0;
    for (auto step = all.rbegin(); step != all.rend(); ++step) {
      if (*step > newest) continue;
      if (kept == keep_) {
        remove_file(files_, path_of(*step));
      } else if (holds(*step)) {
        ++kept;
      }
    }
  } catch (const InputError&) {
    // The new checkpoint is there; what is left over is removed after the next save.
  }
}

std::optional<CheckpointFolder::Found> CheckpointFolder::load(
    const std::map<Step, std::uint64_t>& weights) {
  const std::vector<Step> all = steps();
  std::vector<std::string> passed_over;
  damaged_.clear();
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    const fs::path path = path_of(*step);
    try {
      Checkpoint checkpoint = read_checkpoint(files_, path, model_, run_);
      if (checkpoint.position.step != *step) {
        throw InputError(path.string(), 0,
                         "the checkpoint of step " + std::to_string(checkpoint.position.step),
                         "that of the step in its name");
      }
      if (const auto recorded = weights.find(*step); recorded != weights.end()) {
        refuse_other_weights(path, hash_of_weights(checkpoint.layers), recorded->second);
      }
      good_.insert(*step);
      return Found{std::move(checkpoint), std::move(passed_over)};
    } catch (const InputError& error) {
      passed_over.emplace_back(error.what());
      damaged_.insert(*step);
    }
  }
  if (passed_over.empty()) return std::nullopt;
  throw InputError(folder_.string(), 0, "no checkpoint that holds; the newest: " + passed_over[0],
                   "a good one");
}

}  // namespace frazil
