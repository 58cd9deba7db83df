#pragma once
// WeightsKeeper writes the weights that a run ends with into its folder: weights.safetensors, whose
// names are those of the model's class in Hugging Face or of its model file. A failure waits until
// the answer is out: a full disk does not take what was learnt from who reads the terminal.

#include <exception>
#include <filesystem>
#include <vector>

#include "exec/config/run_config.h"
#include "exec/models/model.h"
#include "exec/state/layer_state.h"

namespace frazil {

class WeightsKeeper {
 public:
  // Writes the weights of all layers of the run's model after so many steps. Keeps an InputError
  // for rethrow().
  void keep(const std::filesystem::path& folder, const RunConfig& config, const ModelSpec& model,
            const std::vector<LayerState>& layers, Step done);
  bool is_kept() const { return is_kept_; }
  // Throws what keep() has kept from throwing.
  void rethrow() const;

 private:
  bool is_kept_ = false;
  std::exception_ptr failure_;
};

}  // namespace frazil
