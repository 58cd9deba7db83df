#pragma once
// clang-format off
// The whole state of a training in one file, by layer, so that it can go on under any plan. The
// layout is that of safetensors:
//   8 bytes        size n of the header, little endian
//   n bytes        the header, JSON, filled up with spaces so that the data begin at 64 x k
//   data           "header_hash", 8 bytes: XXH64 of all before the data, little endian; then the
//                  tensors, each at 64 x k; what lies between is zeros, "padding.<i>" in the header
// Tensors stand in the order of layers: first the parameters of a layer under their (Hugging Face)
// names, float32, then "first_moment.<name>", "second_moment.<name>" and "gradient_sum.<name>" if
// the layer has them, then its running statistics under theirs, float32 or, of a counter, int64. A
// name that an earlier layer has taken (of a tied parameter) becomes
// "<name>@<layer>". The header's "__metadata__" holds one text, "checkpoint", again JSON:
// {"format": "frazil.checkpoint", "version": 1, ...} with the members below and XXH64 of each
// tensor.
// clang-format on

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/checkpoint/measured_costs.h"
#include "exec/disk/file_system.h"
#include "exec/state/layer_state.h"
#include "traces/freeze_mask.h"

namespace frazil {

// A checkpoint and the run that reads it must agree on this.
struct RunIdentity {
  std::string model_hash;
  std::uint64_t run_hash = 0;  // over all that decides the bits, except the plan
  // The settings that decide the bits, by key; not in the checkpoint (exec/checkpoint/run_keys.h).
  std::map<std::string, std::string> keys = {};
  friend bool operator==(const RunIdentity&, const RunIdentity&) = default;
};

// The place of a training between two steps. The order of samples and the learning rate follow from
// this position and the run.
struct TrainingPosition {
  Step step = 0;                   // steps done, and so the next step
  Step steps = 0;                  // of the whole run; the learning rate follows from step / steps
  std::int64_t step_in_epoch = 0;  // steps done
  int epoch = 0;
  double epoch_loss = 0;  // sum over the samples of the epoch so far
  std::int64_t epoch_samples = 0;
  double learning_rate = 0;        // of the last step
  FreezeMask mask;                 // of the last step
  std::string authority = "null";  // JSON: what whoever decides on freezing keeps, as it was given
  // None: nothing has been found, or the checkpoint is of a version of Frazil that kept nothing.
  std::optional<MeasuredCosts> costs = std::nullopt;
  friend bool operator==(const TrainingPosition&, const TrainingPosition&) = default;
};

struct Checkpoint {
  TrainingPosition position;
  std::vector<LayerState> layers;  // on the host
};

// Returns XXH64 over the bytes of all parameters and running statistics, layer after layer.
std::uint64_t hash_weights(const std::vector<const LayerState*>& layers);

// Writes a new file and syncs it; `layers[l]` is the state of layer l. Throws InputError; what is
// there of the file then stays.
void write_checkpoint(const FileSystem& files, const std::filesystem::path& path,
                      const ModelSpec& model, const RunIdentity& run,
                      const TrainingPosition& position,
                      const std::vector<const LayerState*>& layers);

// Throws InputError in one sentence for a file that is not, to the last bit, what write_checkpoint
// has written for this model and run.
Checkpoint read_checkpoint(const FileSystem& files, const std::filesystem::path& path,
                           const ModelSpec& model, const RunIdentity& run);

}  // namespace frazil
