#pragma once
// A small causal language model (pre-norm): tokens, positions, blocks of two layers (attention,
// MLP), final norm, logits. The first and the last layer hold one table. The samples' input is
// token ids, their labels the next ones, both [n, tokens] int64; the loss is over all positions.

#include "exec/models/model.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

struct DecoderConfig {
  int vocabulary = 18;
  int tokens = 5;
  int dim = 16;
  int heads = 2;
  int blocks = 2;
  double dropout = 0.1;
};

ModelSpec make_decoder(const DecoderConfig& config);
std::vector<Samples> make_decoder_samples(const DecoderConfig& config, const StepShape& shape);

}  // namespace frazil
