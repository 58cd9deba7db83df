#include "exec/checkpoint/run_identity.h"

#include <ATen/ATen.h>

#include "exec/disk/hashes.h"

namespace frazil {

RunIdentity identify_run(const RunConfig& config, const std::string& model_hash,
                         const Dataset& data, Step steps) {
  RunConfig deciding = config;
  deciding.data.path.clear();
  deciding.message_order = {};
  deciding.deadline_seconds = 1;
  std::uint64_t hash = hash_text(model_hash + "\n" + to_json(deciding) + std::to_string(steps));
  Tensors samples = data.train.inputs;
  samples.push_back(data.train.labels);
  for (const at::Tensor& tensor : samples) {
    const at::Tensor whole = tensor.contiguous();
    hash = hash_bytes(whole.const_data_ptr(), whole.nbytes(), hash);
  }
  return {model_hash, hash};
}

}  // namespace frazil
