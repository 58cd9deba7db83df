#pragma once
// Makes a model of three layers in three blocks with a skip edge and a tied parameter.

#include "profiles/model_profile.h"

namespace frazil {

inline CostSample make_cost(int size, std::int64_t time, std::int64_t stash) {
  return {.micro_batch_size = size,
          .forward = Duration{time},
          .forward_frozen = Duration{time - 1},
          .backward_input = Duration{time + 1},
          .backward_weight = Duration{time + 2},
          .backward_weight_alone = Duration{time + 3},
          .stash = {stash},
          .stash_frozen = Bytes{stash / 2}};
}

inline ModelProfile small_model() {
  ModelProfile profile;
  profile.model = "small";
  profile.blocks = {"embedding", "block 1", "head"};
  profile.layers = {
      {.name = "embed",
       .block = BlockId(0),
       .parameters = {400},
       .optimizer_state = {800},
       .update = Duration{90},
       .costs = {make_cost(1, 1'000, 64), make_cost(4, 3'500, 256)}},
      {.name = "attention",
       .block = BlockId(1),
       .parameters = {1'600},
       .optimizer_state = {3'200},
       .update = Duration{300},
       .costs = {make_cost(1, 7'000, 128), make_cost(2, 11'001, 200), make_cost(8, 40'000, 1'024)}},
      {.name = "head",
       .block = BlockId(2),
       .has_loss = true,
       .parameters = {400},
       .optimizer_state = {800},
       .update = Duration{95},
       .costs = {make_cost(2, 2'000, 32)}}};
  profile.edges = {{LayerId(0), LayerId(1), EdgeKind::kGradient, {{256}}},
                   {LayerId(0), LayerId(2), EdgeKind::kDetached, {{256}, {8}}},
                   {LayerId(1), LayerId(2), EdgeKind::kGradient, {{512}}}};
  profile.tied = {{"tokens", {400}, {LayerId(0), LayerId(2)}}};
  profile.input_bytes_per_sample = {784};
  profile.provenance = {{"command", "frazil profile"}, {"device", "one core"}};
  return profile;
}

}  // namespace frazil
