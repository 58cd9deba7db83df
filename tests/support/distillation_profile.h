#pragma once
// Makes profiles of blockwise distillation for tests: teacher and student blocks T0 S0 T1 S1 ...,
// joined by detached edges. Teacher block i feeds T(i+1) and S(i+1), and teaches S(i).

#include <string>
#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

struct DistillationBlock {
  Duration teacher{0};
  Duration student{0};  // forward, backward and update of a batch together
};

// Makes a profile with costs at batch sizes 1 and 64, in proportion; the given times are those at
// 1. Only the students have parameters.
inline ModelProfile make_distillation_profile(const std::vector<DistillationBlock>& blocks) {
  ModelProfile profile;
  profile.model = "distillation";
  profile.input_bytes_per_sample = Bytes{10};
  const auto add = [&](const std::string& name, std::size_t block, bool is_student, Duration time) {
    Layer layer;
    layer.name = name;
    layer.block = BlockId{block};
    layer.has_loss = is_student;
    layer.parameters = Bytes{is_student ? 1000 : 0};
    for (const int size : {1, 64}) {
      CostSample cost;
      cost.micro_batch_size = size;
      (is_student ? cost.backward_weight_alone : cost.forward_frozen) = time * size;
      cost.stash = Bytes{is_student ? 100 * size : 0};
      layer.costs.push_back(cost);
    }
    profile.layers.push_back(layer);
  };
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    profile.blocks.push_back("block" + std::to_string(b));
    add("teacher" + std::to_string(b), b, false, blocks[b].teacher);
    add("student" + std::to_string(b), b, true, blocks[b].student);
    const LayerId teacher{2 * b};
    profile.edges.push_back({teacher, LayerId{2 * b + 1}, EdgeKind::kDetached, {Bytes{20}}});
    if (b + 1 == blocks.size()) continue;
    profile.edges.push_back({teacher, LayerId{2 * b + 2}, EdgeKind::kDetached, {Bytes{20}}});
    profile.edges.push_back({teacher, LayerId{2 * b + 3}, EdgeKind::kDetached, {Bytes{20}}});
  }
  return profile;
}

}  // namespace frazil
