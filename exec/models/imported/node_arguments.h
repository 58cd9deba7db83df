#pragma once
// The arguments of a node, put on the stack for each call.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/models/imported/convert_arguments.h"
#include "exec/tensors/tensors.h"

namespace frazil {

// What arguments depend on besides values.
struct ArgumentCall {
  std::int64_t samples = 0;  // n
  c10::Device device = c10::kCPU;
  bool training = false;
};

class NodeArguments {
 public:
  // Throws InputError as convert_arguments does. A flag for training that was recorded as set
  // becomes the call's.
  NodeArguments(const ImportedNode& node, const c10::FunctionSchema& schema, const Slots& slots,
                const std::string& file);
  NodeArguments(NodeArguments&&) noexcept;
  ~NodeArguments();

  // From now on `fill` takes these values away instead of copying them. Requires: nobody reads them
  // after this node.
  void let_go(const std::vector<std::size_t>& slots);
  // Puts all arguments on an empty stack.
  void fill(Stack& stack, Tensors& values, const ArgumentCall& call) const;

  const std::vector<std::size_t>& reads() const { return values_.reads; }  // slots, once per use
  bool depends_on_samples() const;
  bool depends_on_device() const;
  bool depends_on_training() const;
  // Returns the argument of that name. Undefined for a hole and where there is none.
  c10::IValue known(const std::string& name) const;
  // Returns the slot of a tensor argument; none for an argument without a tensor.
  std::optional<std::size_t> slot_of(std::size_t argument) const;

 private:
  void fill(c10::IValue& value, const ArgumentHole& hole, Tensors& values,
            const ArgumentCall& call) const;
  bool has(ArgumentHole::Kind kind) const;

  const c10::FunctionSchema& schema_;  // the dispatcher's, which lives as long as the program
  NodeValues values_;
};

}  // namespace frazil
