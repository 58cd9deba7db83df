#pragma once
// A node of a layer with its operation found in libtorch's dispatcher.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/models/imported/imported_graph.h"
#include "exec/models/imported/node_arguments.h"
#include "exec/tensors/keyed_random.h"

namespace c10 {
class OperatorHandle;
}

namespace frazil {

// Where random numbers come from: from keys, or from PyTorch's default generator in the order of
// calls, as eager PyTorch draws them. The second is for comparisons with PyTorch: a plan would
// change the order.
enum class Randomness : std::uint8_t { kKeyed, kEager };

struct NodeCall {
  ArgumentCall arguments;
  LayerId layer;
  const RandomKey& key;
};

class ResolvedNode {
 public:
  // Adds the results' names to `slots`. Throws InputError naming `file` and the node for an unknown
  // operation, another schema than the one that was recorded, an operation that draws without a
  // key, and arguments or results that do not fit.
  ResolvedNode(const ImportedNode& node, const ImportedGraph& graph, Randomness randomness,
               Slots& slots, const std::string& file);

  // From now on `run` takes these values away when it has read them. Requires: no later node and
  // no caller reads them.
  void let_go(const std::vector<std::size_t>& slots) { arguments_.let_go(slots); }
  // Reads tensors of `values` and puts the results there; where the node keeps running statistics
  // and the call is in training, their slots then hold those of the call's samples. `stack` is
  // scratch, empty before and after. Throws InfeasibleError for what cannot be done with this call,
  // and c10::Error of the operation with its place.
  void run(Tensors& values, Stack& stack, const NodeCall& call) const;

  const ImportedNode& node() const { return *node_; }
  const NodeArguments& arguments() const { return arguments_; }
  const std::vector<std::size_t>& makes() const { return makes_; }    // slots
  const std::vector<std::size_t>& writes() const { return writes_; }  // slots, read too
  bool may_alias() const { return may_alias_; }  // a result may share memory with an argument
  bool draws() const { return kind_ != Kind::kPlain && kind_ != Kind::kStatistics; }
  // Dropout does not.
  bool draws_in_evaluation() const { return kind_ == Kind::kGenerator; }
  bool detaches() const;  // no gradient passes
  // The slots of the running statistics that the node keeps in training, and their momentum.
  const std::vector<std::size_t>& keeps() const { return keeps_; }
  double momentum() const;

 private:
  enum class Kind : std::uint8_t {
    kPlain,
    kStatistics,  // normalises by statistics: in training by those of its input
    kDropout,
    kDropoutInPlace,
    kChannelDropout,
    kNativeDropout,
    kAttention,
    kGenerator,
  };

  Kind find_kind() const;
  Kind find_other_kind() const;
  void find_effects();
  void find_kept();
  void check_results(Slots& slots);
  std::size_t argument_index(std::string_view name) const;
  Tensors begin_statistics(Stack& stack, const NodeCall& call) const;
  void perform(Stack& stack, const NodeCall& call) const;
  void perform_special(Stack& stack, const NodeCall& call) const;
  void draw(Stack& stack, const NodeCall& call) const;
  void take_results(Stack& stack, Tensors& values) const;
  void take_lists(Stack& stack, Tensors& values) const;
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const;

  const ImportedNode* node_;  // of the model, which outlives the program
  std::string file_;
  std::shared_ptr<const c10::OperatorHandle> op_;
  Randomness randomness_;
  NodeArguments arguments_;
  Kind kind_ = Kind::kPlain;
  std::vector<std::vector<std::size_t>> results_;  // slots, by result
  std::vector<std::size_t> single_;                // the same, if no result is a list
  std::vector<std::size_t> makes_;
  std::vector<std::size_t> writes_;
  std::vector<std::size_t> keeps_;
  bool may_alias_ = false;
};

}  // namespace frazil
