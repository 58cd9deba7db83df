#pragma once
// The checkpoints of one run: "step-<12 digits>.safetensors" in a folder. A new one is written
// under a temporary name, synced, renamed and the folder synced; only then older ones go, and never
// the newest `keep` that hold. The newest good one is found by reading, no file points to it.

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exec/checkpoint/checkpoint_file.h"

namespace frazil {

class CheckpointFolder {
 public:
  // Makes the folder where there is none, and removes what an unfinished save has left.
  // `files` and `model` outlive this.
  CheckpointFolder(const FileSystem& files, std::filesystem::path folder, const ModelSpec& model,
                   RunIdentity run, int keep = 2);

  // When this returns, the checkpoint is durable. Throws InputError; earlier ones are as they were
  // then, and no temporary file is left as far as one can be removed.
  void save(const TrainingPosition& position, const std::vector<const LayerState*>& layers);

  struct Found {
    Checkpoint checkpoint;
    std::vector<std::string> passed_over;  // a sentence for each newer one
  };
  // The newest good one of a step up to `latest`; none where the folder holds none at all. Throws
  // InputError where it holds some, and none is good. Changes nothing.
  std::optional<Found> load(Step latest);

  // Of steps up to `newest` only the last good ones that are to be kept stay, as far as others can
  // be removed. Every save does so; a process may have been killed in between.
  void prune(Step newest);

  std::vector<Step> steps() const;  // of all files, ascending

 private:
  std::filesystem::path path_of(Step step) const;
  void write(const std::filesystem::path& temporary, const TrainingPosition& position,
             const std::vector<const LayerState*>& layers);
  bool holds(Step step);

  const FileSystem& files_;
  std::filesystem::path folder_;
  const ModelSpec& model_;
  RunIdentity run_;
  int keep_;
  std::set<Step> good_;  // written or read by this object
};

}  // namespace frazil
