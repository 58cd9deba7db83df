#pragma once
// A model as it was measured: layers in a fixed topological order, the edges between them, blocks
// (the unit of freezing), and what each layer costs by micro-batch size. Times are of one device of
// the profiled kind; bytes are logical bytes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiles/doubt.h"
#include "profiles/precision.h"
#include "profiles/units.h"

namespace frazil {

// The cost of one layer for one micro-batch of `micro_batch_size` samples. The fused backward B
// costs backward_input + backward_weight, or the part of it that the layer needs under the mask:
// backward_input without W, backward_weight_alone without I.
struct CostSample {
  int micro_batch_size = 1;
  Duration forward{0};
  // F that saves nothing, so it is faster: of a layer without a backward, and of any layer of a
  // stage that recomputes.
  Duration forward_frozen{0};
  Duration backward_input{0};   // I (dgrad): gradient of the layer's inputs
  Duration backward_weight{0};  // W (wgrad): gradient of the layer's parameters, after I
  // W of a layer whose inputs need no gradient (the first active layer). Without I, W must walk the
  // layer's inner gradients itself, so it costs more than W after I.
  Duration backward_weight_alone{0};
  // Saved activations: the unique storages that F keeps for the backward of this micro-batch. The
  // layer's input counts here, its output at the layer that reads that output.
  Bytes stash;
  // The stash of a frozen layer whose inputs need a gradient: what only W reads is not kept. None
  // means not measured; kept() then takes `stash`.
  std::optional<Bytes> stash_frozen = std::nullopt;

  // Returns the stash of a layer whose block trains, or of one whose block is frozen.
  Bytes kept(bool trains) const { return trains ? stash : stash_frozen.value_or(stash); }
  friend bool operator==(const CostSample&, const CostSample&) = default;
};

// The atomic unit of partition. A layer carries a loss iff `has_loss`.
struct Layer {
  std::string name;
  BlockId block;
  bool has_loss = false;
  // What the layer holds, its own copy of a tied parameter included.
  Bytes parameters;
  Bytes optimizer_state;
  Duration update{0};             // one optimizer step over all its parameters
  std::vector<CostSample> costs;  // ascending micro_batch_size, at least one
  // Those of `parameters` that never train, whether the block is frozen or not: they take no W,
  // gradient, reduction or optimizer state.
  Bytes untrainable = {};
  // A forward in training draws, or reads or changes statistics, so its outputs are not those of an
  // evaluation.
  bool varies_in_training = false;

  // Returns the bytes of parameters that train. 0: the layer is never active unless it uses a tied
  // parameter.
  Bytes trainable() const { return parameters - untrainable; }
  friend bool operator==(const Layer&, const Layer&) = default;
};

enum class EdgeKind { kGradient, kDetached };

// `to` reads what `from` produced. A boundary may be several tensors; those that carry no gradient
// beside others that do (a mask) go over a detached edge between the same layers.
struct Edge {
  LayerId from;
  LayerId to;
  EdgeKind kind = EdgeKind::kGradient;
  std::vector<Bytes> tensor_bytes_per_sample;

  Bytes bytes(int micro_batch_size) const;  // throws InputError beyond kLargestQuantity
  friend bool operator==(const Edge&, const Edge&) = default;
};

// One parameter used by several layers (embedding and head).
struct TiedParameter {
  std::string name;
  Bytes bytes;
  std::vector<LayerId> layers;
  bool trainable = true;

  friend bool operator==(const TiedParameter&, const TiedParameter&) = default;
};

// The sources of a file's numbers (device, command, repetitions, date, ...): free text by key.
using Provenance = std::map<std::string, std::string>;

struct ModelProfile {
  std::string model;
  std::vector<std::string> blocks;  // names; block 0 first
  std::vector<Layer> layers;        // topological order
  std::vector<Edge> edges;          // sorted by (from, to, kind)
  std::vector<TiedParameter> tied;
  Bytes input_bytes_per_sample;            // what a layer without incoming edges reads
  Precision precision = Precision::kFp32;  // in which the layers were measured
  // True when the source gave, for some sample, only a whole backward B, whose I and W were made by
  // the rule of profiles/split_backward.h: halves, except that all of B is W where the layer's
  // inputs need no gradient, and I where it has no parameters.
  bool backward_was_split_by_rule = false;
  std::vector<Doubt> doubts;  // ascending by fact, each fact once
  Provenance provenance;

  friend bool operator==(const ModelProfile&, const ModelProfile&) = default;
};

struct LayerCost {
  CostSample cost;
  bool extrapolated = false;  // the size lies outside the measured ones
};

// Returns the costs of a layer at any micro-batch size >= 1: linear between measured neighbours,
// rounded down to whole ns and bytes. Outside the measured range it prolongs the nearest segment
// (and scales a single sample in proportion), never below zero, and sets `extrapolated`. Throws
// InputError when a prolonged cost exceeds kLargestQuantity.
LayerCost cost_at(const Layer& layer, int micro_batch_size);

// Returns 16 hex digits over the structure alone: names, blocks, losses, parameter bytes, edges,
// ties (XXH64 of a canonical text), the precision unless it is fp32, and what does not train, if
// anything. A new measurement of the same model in the same precision keeps the hash.
std::string model_hash(const ModelProfile& profile);

// Throws InputError (naming `file`, line 0) for what cannot be a model: edges that run backward,
// unknown layers or blocks, blocks that are not consecutive or hold no layer, names that are empty
// or doubled, no layer, no loss, unsorted costs, counts outside [0, kLargestQuantity], ...
void validate(const ModelProfile& profile, const std::string& file);

}  // namespace frazil
