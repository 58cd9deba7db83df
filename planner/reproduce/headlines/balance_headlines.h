#pragma once
// Headlines of papers that balance the stages of a pipeline, for models made of what they published
// and of what is assumed, which the rows say: DynMo (Wahib, Soyturk, Unat, arXiv 2505.14864), which
// cuts anew as layers freeze, and AutoPipe (Liu et al., CLUSTER 2022), which cuts by time at the
// granularity of sub-layers. Both stand beside Megatron-LM, which gives each stage as many layers.

#include <vector>

#include "planner/reproduce/result_table.h"
#include "profiles/model_profile.h"
#include "traces/freeze_mask.h"

namespace frazil {

// Makes a chain of layers with these forward times, a block each; I and W take as long as F each.
ModelProfile make_balance_chain(const std::vector<Duration>& forward);

// Returns the forward times of GPT-2's units (embedding; attention and MLP of each layer; head) as
// their multiply-adds per token, a ns for each thousand:
//   attention 4 h^2 + 2 s h,  MLP 8 h^2,  head h V,  embedding 0
std::vector<Duration> list_gpt_forwards(int layers, std::int64_t hidden, std::int64_t sequence,
                                        std::int64_t vocabulary);

// The time of a 1F1B step without reductions, updates and messages. Requires: no more stages than
// layers; `cuts` are the first layers of stages 1, 2, ...
Duration time_cut(const ModelProfile& profile, const std::vector<LayerId>& cuts,
                  const FreezeMask& mask, int micro_batches);

std::vector<ResultRow> list_balance_headlines();

}  // namespace frazil
