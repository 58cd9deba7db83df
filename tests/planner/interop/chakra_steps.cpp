#include "tests/planner/interop/chakra_steps.h"

#include <chrono>

#include "profiles/model_profile_json.h"
#include "tests/support/sample_models.h"

namespace frazil {

using std::chrono::microseconds;
using std::chrono::milliseconds;

WhatIf make_question(ScheduleKind kind, int stages, int micro_batches) {
  WhatIf what_if;
  what_if.schedule = kind;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.forward = {milliseconds(1)};
  what_if.backward_input = {milliseconds(1)};
  what_if.backward_weight = {milliseconds(1)};
  what_if.hop = microseconds(313);
  return what_if;
}

WhatIfInputs make_chain_inputs(int stages, int micro_batches, Bytes boundary, const Link& link) {
  WhatIfInputs inputs;
  inputs.profile = make_chain(stages, milliseconds(1), milliseconds(1), milliseconds(1));
  for (Edge& edge : inputs.profile.edges) edge.tensor_bytes_per_sample = {boundary};
  inputs.cluster = make_uniform_cluster(stages, Bytes{1'000'000'000}, link);
  Plan& plan = inputs.plan;
  plan.model_hash = model_hash(inputs.profile);
  plan.batch_size = micro_batches;
  plan.mask = FreezeMask::all_active(stages);
  std::vector<LayerId> cuts;
  std::vector<DeviceId> devices = {DeviceId{0}};
  for (int s = 1; s < stages; ++s) {
    cuts.emplace_back(s);
    devices.emplace_back(s);
  }
  plan.pipelines = {
      make_pipeline(stages, cuts, devices, {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
  plan.schedule = NamedSchedule{};
  return inputs;
}

ChakraTraces to_chakra(const WhatIfInputs& inputs, const SimulatedStep& step) {
  return to_chakra(step, inputs.plan, {inputs.profile, inputs.cluster});
}

ChakraFiles read_all(const ChakraTraces& traces) {
  ChakraFiles files;
  files.reserve(traces.files.size());
  for (const std::string& file : traces.files) files.push_back(read_chakra_file(file));
  return files;
}

}  // namespace frazil
