#pragma once
// LayerGraph is one layer at work on one micro-batch: its outputs and its autograd graph, cut at
// the layer's inputs. Input gradients (I, dgrad) and weight gradients (W, wgrad) may be asked for
// together (B) or apart (I, then W). I also computes the gradients of the outputs of the layer's
// parametric operations, so that W is left with those operations alone. The bits are those of B.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "exec/models/model.h"
#include "planner/plan/activity.h"

namespace torch::autograd {
struct Node;
}

namespace frazil {

class LayerGraph {
 public:
  // The arguments of a layer's forward besides its parameters.
  struct Call {
    Tensors inputs;
    std::vector<bool> carries;  // by input: whether its gradient will be asked for
    RandomKey key;
    bool splits = false;  // I and W will be asked for apart, so their seams are kept
    const Tensors* statistics = nullptr;  // these two as in LayerCall
    Tensors* batch_statistics = nullptr;
  };

  // Runs the layer's forward.
  LayerGraph(const ModelSpec& model, LayerId layer, const Tensors& parameters,
             const LayerActivity& activity, const Call& call);

  LayerId layer() const { return layer_; }
  // Hands out the outputs, undetached. The graph itself keeps what it needs of them.
  Tensors take_outputs() { return std::move(outputs_); }
  // Adds a loss made of the outputs; its gradient is 1. One that nothing can learn from, because
  // the step moves nothing of the layer (LayerSpec::moved), has none.
  void add_loss(const at::Tensor& loss);

  struct Gradients {
    Tensors inputs;  // by input; undefined where none is wanted
    // By parameter that requires grad, zeros where no gradient reaches it; empty where none are
    // wanted.
    Tensors weights;
  };
  // Compute the gradients of B, I and W. Each may be asked for once: B, or I and then W.
  // `gradients`: by output, undefined where none comes.
  Gradients backward(const Tensors& gradients);
  Tensors backward_input(const Tensors& gradients);
  Tensors backward_weight();
  bool owes_weights() const { return activity_.weight_gradient; }

 private:
  // A seam is a place in the graph, with the gradient that enters or passes there. It holds no
  // output.
  struct Seam {
    std::shared_ptr<torch::autograd::Node> node;
    std::uint32_t output = 0;
    at::Tensor gradient = {};
    // These two belong to the seam of a parametric operation.
    std::vector<std::size_t> parameters = {};  // places among those that train
    std::function<Tensors(const at::Tensor&)> differentiate = {};
  };

  static Seam seam_of(const at::Tensor& tensor);
  void add_operation(ParametricOperation& operation,
                     const std::vector<std::optional<std::size_t>>& place_of);
  void set_root_gradients(const Tensors& gradients);
  Tensors differentiate(const Seam& operation) const;
  // Returns the gradients at `leaves` and then those at `seams`. `keeps`: the graph will be run
  // through again.
  static Tensors run(const std::vector<Seam>& roots, const Tensors& leaves,
                     const std::vector<Seam>& seams, bool keeps);
  Tensors carrying_inputs() const;
  Tensors spread_over_inputs(Tensors::iterator found) const;

  LayerId layer_;
  LayerActivity activity_;
  Tensors parameters_;  // those that train, as they were at the forward
  Tensors inputs_;      // leaves; those require grad whose gradients are asked for
  Tensors outputs_;
  std::vector<Seam> roots_;               // outputs that a gradient can come for, then losses
  std::vector<std::size_t> root_output_;  // by root that is an output: its index
  std::vector<Seam> operations_;
};

}  // namespace frazil
