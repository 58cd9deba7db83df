#pragma once
// The arguments of a node as its operation's schema wants them: what is known before a call is
// converted once, and what is not is a hole that each call fills.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/models/imported/imported_graph.h"
#include "exec/tensors/tensors.h"

namespace c10 {
struct FunctionSchema;
struct IValue;
}  // namespace c10

namespace frazil {

using Stack = std::vector<c10::IValue>;            // what the dispatcher takes arguments from
using Slots = std::map<std::string, std::size_t>;  // places of a program's values, by name

// What arguments depend on besides values.
struct ArgumentCall {
  std::int64_t samples = 0;  // n
  c10::Device device = c10::kCPU;
  bool training = false;
};

class NodeArguments {
 public:
  // Throws InputError naming `file` and the node for an argument that the schema does not have or
  // that has another type, and for one that is missing. A flag for training that was recorded as
  // set becomes the call's.
  NodeArguments(const ImportedNode& node, const c10::FunctionSchema& schema, const Slots& slots,
                const std::string& file);
  NodeArguments(NodeArguments&&) noexcept;
  ~NodeArguments();

  // From now on `fill` takes these values away instead of copying them. Requires: nobody reads them
  // after this node.
  void let_go(const std::vector<std::size_t>& slots);
  // Puts all arguments on an empty stack.
  void fill(Stack& stack, Tensors& values, const ArgumentCall& call) const;

  const std::vector<std::size_t>& reads() const { return reads_; }  // slots, once per use
  bool depends_on_samples() const;
  bool depends_on_device() const;
  bool depends_on_training() const;
  // Returns the argument of that name. Undefined for a hole and where there is none.
  c10::IValue known(const std::string& name) const;
  // Returns the slot of a tensor argument; none for an argument without a tensor.
  std::optional<std::size_t> slot_of(std::size_t argument) const;

 private:
  struct Hole {
    enum class Kind : std::uint8_t {
      kTensor,
      kTensors,
      kOptionalTensors,
      kSize,
      kRealSize,
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
  class Converter;

  void fill(c10::IValue& value, const Hole& hole, Tensors& values, const ArgumentCall& call) const;
  bool has(Hole::Kind kind) const;

  const c10::FunctionSchema& schema_;  // the dispatcher's, which lives as long as the program
  Stack known_;
  std::vector<Hole> holes_;
  std::vector<std::size_t> reads_;
};

}  // namespace frazil
