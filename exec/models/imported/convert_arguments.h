#pragma once
// Converts the arguments that a model file records for a node into those that its operation's
// schema wants. What is known before a call is converted once; the rest is a hole that each call
// fills.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "exec/models/imported/imported_graph.h"

namespace c10 {
struct FunctionSchema;
struct IValue;
}  // namespace c10

namespace frazil {

using Stack = std::vector<c10::IValue>;            // what the dispatcher takes arguments from
using Slots = std::map<std::string, std::size_t>;  // places of a program's values, by name

inline constexpr std::size_t kNoSlot = std::numeric_limits<std::size_t>::max();

struct ArgumentHole {
  enum class Kind : std::uint8_t {
    kTensor,
    kTensors,
    kOptionalTensors,
    kSize,
    kRealSize,
    kWrappedSize,  // a size in place of a tensor
    kSizes,
    kDevice,
    kTraining
  };
  Kind kind;
  std::size_t argument;
  std::vector<std::size_t> slots = {};  // kNoSlot for a tensor that is left out
  bool is_last = false;                 // of kTensor: nobody reads the value afterwards
  std::vector<Polynomial> sizes = {};
};

struct NodeValues {
  Stack known;  // one for each argument; none where there is a hole
  std::vector<ArgumentHole> holes;
  std::vector<std::size_t> reads;  // slots, once per use
};

// Returns a number in place of a tensor, which weighs as little in type promotion as a number does.
at::Tensor wrap_number(std::int64_t number);

// Throws InputError naming `file` and the node for an argument that the schema does not have or
// that has another type, and for one that is missing. A flag for training that was recorded as set
// becomes a hole. Requires: `slots` has a place for each value that the node reads.
NodeValues convert_arguments(const ImportedNode& node, const c10::FunctionSchema& schema,
                             const Slots& slots, const std::string& file);

}  // namespace frazil
