#pragma once
// A small bidirectional encoder with an attention mask (post-norm; Devlin et al. 2019): embedding,
// blocks of two layers (attention, MLP), a head that reads the first token. The samples' inputs are
// token ids and token types, [n, tokens] int64, and a mask, [n, tokens] bool, true where a token
// stands. The mask goes from layer to layer over detached edges, beside the hidden states; nobody
// reads what the last block passes on.

#include "exec/models/model.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

struct EncoderConfig {
  int vocabulary = 20;
  int types = 2;
  int tokens = 5;
  int dim = 16;
  int heads = 2;
  int blocks = 2;
  int classes = 4;
  double dropout = 0.1;
};

ModelSpec make_encoder(const EncoderConfig& config);
std::vector<Samples> make_encoder_samples(const EncoderConfig& config, const StepShape& shape);

}  // namespace frazil
