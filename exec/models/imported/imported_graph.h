#pragma once
// What a model file says (docs/model-file.md): layers as lists of operations over named values.
// Knows no torch. Values are named as in the file: "v3" of a node, "p3", "c3" and "b3" the model's
// parameters, constants and buffers by position, "i0" its inputs; "o0" and "labels" of a loss.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/disk/tensor_header.h"

namespace frazil {

// A size as a polynomial in n, the samples of a micro-batch.
struct Polynomial {
  enum class Kind : std::uint8_t { kNumber, kSamples, kSum, kProduct, kQuotient };
  Kind kind = Kind::kNumber;
  std::int64_t number = 0;        // kNumber: the value; kQuotient: the divisor, at least 1
  std::vector<Polynomial> terms;  // kQuotient rounds its one term down

  // Throws InfeasibleError for a value that no size can have.
  std::int64_t at(std::int64_t samples) const;
  bool depends_on_samples() const;
};

struct ImportedArgument {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kInteger,
    kReal,
    kText,
    kList,
    kValue,
    kSize,
    kType,
    kDevice,  // where the layer runs
    kLayout,
    kMemoryFormat,
    kGenerator
  };
  Kind kind = Kind::kNone;
  bool truth = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;  // kText, kLayout, kMemoryFormat; kValue: its name
  TensorType type = TensorType::kFloat32;
  Polynomial size = {};
  std::vector<ImportedArgument> items = {};
};

// One result of a node: a tensor, or a list of tensors. Those that nobody reads have no name.
struct ImportedResult {
  bool is_list = false;
  std::vector<std::string> names;  // one, unless a list
};

struct ImportedNode {
  std::string op;  // "aten::add.Tensor"
  std::vector<ImportedArgument> arguments;
  std::vector<std::pair<std::string, ImportedArgument>> named_arguments;
  std::vector<ImportedResult> results;
  std::optional<std::int64_t> draw;  // index of a random node's draw within its layer
  bool has_no_gradient = false;      // runs without grad mode
  std::string path;                  // of the module
  std::string source;                // "model.py:31"
};

// Returns "aten::linear of h.0.attention (model.py:31)".
std::string place_of(const ImportedNode& node);

struct ImportedType {
  TensorType type = TensorType::kFloat32;
  std::vector<Polynomial> shape;
};

// Where n is read: a dimension of an input.
struct SamplesPlace {
  std::size_t input = 0;
  std::size_t dimension = 0;
};

struct ImportedLayer {
  std::string name;
  std::size_t block = 0;
  std::vector<std::size_t> parameters;  // positions in the model
  std::vector<std::size_t> buffers;
  std::vector<std::size_t> constants;
  std::vector<std::string> inputs;
  SamplesPlace samples;
  std::vector<std::string> outputs;
  std::vector<ImportedType> output_types;  // by output
  bool mixes_samples = false;              // in training
  bool mixes_in_evaluation = false;
  std::vector<ImportedNode> nodes;
  std::optional<std::vector<ImportedNode>> evaluation;  // where it has nodes of its own
};

struct ImportedEdge {
  std::size_t from = 0;
  std::size_t to = 0;
  bool carries_gradients = true;
  std::vector<std::size_t> outputs;  // of `from`
};

struct ImportedLoss {
  std::vector<std::string> inputs;
  SamplesPlace samples;
  std::vector<std::size_t> constants;
  std::vector<ImportedNode> nodes;
  std::string result;
  std::optional<std::int64_t> ignored_label;
  // The value whose entries count unless they are the ignored label: the labels, or what the loss
  // makes of them alone, such as those without the first of each sample.
  std::string counted = "labels";
};

struct ImportedParameter {
  std::string name;
  std::string tensor;  // of the file, with the start value
  std::vector<std::int64_t> shape;
  bool trainable = true;
  std::string tied;  // equal for the uses of one parameter; empty for a parameter with one use
};

// A running statistic.
struct ImportedBuffer {
  std::string name;
  std::string tensor;       // of the file, with the start value
  bool is_counter = false;  // a single int64, of the batches seen
};

struct ImportedInput {
  std::string name;
  ImportedType type;
};

// What the exporter computed, for the reader to compare.
struct WitnessGradient {
  std::string parameter;
  std::string digest;  // the first 32 hex digits of SHA-256 over the values
  double largest = 0;  // magnitude
  std::string samples;
};

struct WitnessCase {
  std::int64_t count = 0;  // n
  std::uint64_t seed = 0;
  std::vector<std::string> inputs;  // tensors of the file
  std::string labels;
  std::string loss;
  std::vector<std::string> outputs;
  std::vector<WitnessGradient> gradients;
};

// The settings that last bits depend on.
struct Fingerprint {
  std::string torch;      // version, as "2.11.0"
  std::string processor;  // model; last bits do not depend on it where all else is equal
  std::string vendor;
  std::string aten;  // branches of kernels
  std::string mkl;
  std::int64_t threads = 1;
};

// True if nothing differs that last bits depend on.
bool gives_same_bits(const Fingerprint& a, const Fingerprint& b);

struct Witness {
  Fingerprint fingerprint;
  std::vector<WitnessCase> cases;
};

struct ImportedGraph {
  std::string name;
  std::string torch;  // version that exported
  std::vector<std::string> blocks;
  std::vector<std::pair<std::string, std::string>> schemas;  // by operation, sorted
  std::vector<ImportedInput> inputs;
  ImportedType labels;
  std::vector<ImportedParameter> parameters;
  std::vector<std::string> constants;  // tensors of the file
  std::vector<ImportedBuffer> buffers;
  std::vector<std::string> kept;  // what else belongs to the weights, and never changes
  std::vector<ImportedLayer> layers;
  std::vector<ImportedEdge> edges;  // sorted by (from, to), gradients first
  ImportedLoss loss;
  std::optional<Witness> witness;
};

}  // namespace frazil
