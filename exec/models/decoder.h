#pragma once
// make_decoder() makes a causal language model as GPT-2 (Radford et al. 2019) in layers: tokens,
// learned positions, pre-norm blocks of attention and MLP (tanh GELU), final norm, logits. One
// table of tokens is held by the first and the last layer, tied. Block 0 is tokens and positions,
// two layers; with N = DecoderConfig::blocks, blocks 1..N are two layers each, attention and MLP;
// block N + 1, the head, is the final norm and the logits, two layers. The samples' input is ids of
// tokens, [n, tokens] int64, their labels the tokens that come next, of the same shape; the loss is
// the cross entropy of the logits [n, tokens, vocabulary] over all positions.
//
// Parameters have the names of Hugging Face's GPT2LMHeadModel, which holds the weights of its
// Conv1D transposed, [in, out].

#include "exec/models/model.h"

namespace frazil {

struct DecoderConfig {
  int vocabulary = 64;
  int tokens = 32;  // of a sample
  int dim = 64;     // values of a token
  int blocks = 4;   // transformer blocks; embedding and head are blocks besides
  int heads = 4;
  int expansion = 4;   // an MLP is so many times as wide as a token
  double dropout = 0;  // rate in training, after positions, each attention's and each MLP's output
  friend bool operator==(const DecoderConfig&, const DecoderConfig&) = default;
};

// Requires: counts of at least 1, a dim that heads divide. parse_model() refuses other models.
ModelSpec make_decoder(const DecoderConfig& config);

}  // namespace frazil
