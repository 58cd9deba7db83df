#pragma once
// make_encoder() makes a bidirectional encoder with an attention mask as BERT (Devlin et al. 2019)
// in layers: post-norm, learned positions, erf GELU, a head that classifies by the first token.
// Layer 0 embeds (block 0); with N = EncoderConfig::blocks, blocks 1..N are two layers each,
// attention and MLP; the last layer (block N + 1) is pooler and classifier and carries the loss,
// the cross entropy of its logits [n, classes]. The samples' inputs are ids of tokens, segments of
// tokens, and a mask, 1 where a token stands and 0 where the sequence has ended, each [n, tokens]
// int64. What attention adds for the mask goes from layer to layer over detached edges, beside the
// hidden states; nobody reads what the last block passes on.
//
// Parameters have the names of Hugging Face's BertForSequenceClassification, but for query, key and
// value, which lie one after another in one.

#include "exec/models/model.h"

namespace frazil {

struct EncoderConfig {
  int vocabulary = 64;
  int segments = 2;
  int tokens = 32;  // of a sample
  int dim = 64;     // values of a token
  int blocks = 4;   // transformer blocks; embedding and head are blocks besides
  int heads = 4;
  int expansion = 4;  // an MLP is so many times as wide as a token
  int classes = 4;
  double dropout =
      0;  // rate in training, after the embedding, each attention's and each MLP's output
  friend bool operator==(const EncoderConfig&, const EncoderConfig&) = default;
};

// Requires: counts of at least 1, a dim that heads divide. parse_model() refuses other models.
ModelSpec make_encoder(const EncoderConfig& config);

}  // namespace frazil
