#pragma once
// The checkpoints of one run: "step-<12 digits>.safetensors" in a folder. A new one is written
// under a temporary name, synced and renamed, and the folder is synced. Only then older ones are
// removed, and never the newest `keep` good ones. The newest good one is found by reading; no file
// points to it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exec/checkpoint/checkpoint_file.h"

namespace frazil {

class CheckpointFolder {
 public:
  // Makes the folder if there is none, and removes what an unfinished save has left. `files` and
  // `model` outlive this object.
  CheckpointFolder(const FileSystem& files, std::filesystem::path folder, const ModelSpec& model,
                   RunIdentity run, int keep = 2);

  // Writes a checkpoint, which is durable when this returns. Those that load() has passed over are
  // first kept aside (exec/disk/kept_aside.h), for their steps are done again. Throws InputError;
  // earlier checkpoints are then as they were, and no temporary file is left as far as one can be
  // removed.
  void save(const TrainingPosition& position, const std::vector<const LayerState*>& layers);

  struct Found {
    Checkpoint checkpoint;
    std::vector<std::string> passed_over;  // a sentence for each newer checkpoint
  };
  // Reads the newest good checkpoint. One whose weights have another hash than `weights` names for
  // its step is none of this run's. Returns none if the folder holds no checkpoint at all. Throws
  // InputError if it holds some, and none is good. Changes no file.
  std::optional<Found> load(const std::map<Step, std::uint64_t>& weights = {});

  // Removes, as far as files can be removed, the checkpoints of steps up to `newest` but the last
  // good ones that are to be kept. Every save does so; a process may have been killed in between.
  void prune(Step newest);

  std::vector<Step> steps() const;  // of all checkpoint files, ascending

 private:
  std::filesystem::path path_of(Step step) const;
  void write(const std::filesystem::path& temporary, const TrainingPosition& position,
             const std::vector<const LayerState*>& layers);
  void keep_aside();
  bool holds(Step step);

  const FileSystem& files_;
  std::filesystem::path folder_;
  const ModelSpec& model_;
  RunIdentity run_;
  int keep_;
  std::set<Step> good_;     // written or read by this object
  std::set<Step> damaged_;  // passed over by load(), and not kept aside yet
};

}  // namespace frazil
