#include "exec/checkpoint/run_identity.h"

#include <ATen/ATen.h>

#include "exec/disk/hashes.h"
#include "planner/freezing/freeze_json.h"

namespace frazil {

RunIdentity identify_run(const RunConfig& config, const std::string& model_hash,
                         const Dataset& data, Step steps) {
  RunConfig deciding = config;
  deciding.data.path.clear();
  deciding.message_order = {};
  deciding.deadline_seconds = 1;
  deciding.cache = {};  // of one that rounds nothing is checkpointed
  std::string masks;
  if (auto* trace = std::get_if<TraceFreeze>(&deciding.freeze.policy)) {
    trace->path.clear();
    for (const TracedMask& mask : trace->masks) {
      masks += "\n" + std::to_string(mask.step) + " " + mask.mask.text();
    }
    masks += "\n" + std::to_string(trace->steps);
    if (trace->rates) masks += to_json(FreezePolicy(*trace->rates));
  }
  std::uint64_t hash =
      hash_text(model_hash + "\n" + to_json(deciding) + std::to_string(steps) + masks);
  for (const Samples* part : {&data.train, &data.validation}) {
    if (part->count() == 0) continue;
    Tensors samples = part->inputs;
    samples.push_back(part->labels);
    for (const at::Tensor& tensor : samples) {
      const at::Tensor whole = tensor.contiguous();
      hash = hash_bytes(whole.const_data_ptr(), whole.nbytes(), hash);
    }
  }
  return {model_hash, hash};
}

}  // namespace frazil
