#pragma once
// One layer at work on one micro-batch: its output, and its autograd graph, cut at the layer's
// input. The gradients may be asked for together (B) or apart (I, then W): I takes along the
// gradients of what the layer's parametric operations put out, so that W is left with those
// operations alone. The bits are those of B.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/vit.h"
#include "planner/activity.h"

namespace torch::autograd {
struct Node;
}

namespace frazil {

class LayerGraph {
 public:
  // Runs the layer's forward. `splits`: I and W will be asked for apart, so their seams are kept.
  LayerGraph(const ModelSpec& model, LayerId layer, const std::vector<at::Tensor>& parameters,
             const LayerActivity& activity, const at::Tensor& input, const RandomKey& key,
             bool splits);

  LayerId layer() const { return layer_; }
  const at::Tensor& output() const { return output_; }
  // A scaled loss of the output takes its place; its own gradient is 1, so none is passed then.
  void end_with(at::Tensor loss) { output_ = std::move(loss); }

  struct Gradients {
    at::Tensor input;                 // undefined where none is wanted
    std::vector<at::Tensor> weights;  // by parameter; empty where none are wanted
  };
  // Each is asked for once: B, or I and then W. `gradient`: of the output.
  Gradients backward(const at::Tensor& gradient);
  at::Tensor backward_input(const at::Tensor& gradient);
  std::vector<at::Tensor> backward_weight();
  bool owes_weights() const { return activity_.weight_gradient; }

 private:
  // The seam behind a parametric operation: its place in the graph, and between I and W the
  // gradient that passes there. Holds no output.
  struct Operation {
    std::shared_ptr<torch::autograd::Node> node;
    std::uint32_t output = 0;
    std::vector<std::size_t> parameters;
    at::Tensor gradient;
  };

  at::Tensor root_gradient(const at::Tensor& gradient) const;

  LayerId layer_;
  LayerActivity activity_;
  std::vector<at::Tensor> parameters_;  // as they were at the forward
  at::Tensor input_;                    // a leaf; requires_grad iff its gradient is asked for
  at::Tensor output_;                   // holds the graph
  std::vector<Operation> operations_;
  at::Tensor held_;  // between I and W, without seams: the gradient of the output
};

}  // namespace frazil
