#pragma once
// A mobilenet or a supernet as a program of libtorch has it: it knows weights and running
// statistics by name, and no layers; norms keep statistics in place. An operation counts in a
// cell's output by its gate, a number; what has the gate 0 is not run.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "exec/models/convolutions/mobilenet.h"
#include "exec/tensors/samples.h"

namespace frazil {

class PlainMobilenet {
 public:
  // Takes the start values of `model`. A supernet's operations have their names behind their
  // cells'.
  PlainMobilenet(const MobilenetShape& shape, bool is_supernet, const ModelSpec& model,
                 std::uint64_t seed);

  // Opens the gate of one operation of the cell alone.
  void choose(const std::string& cell, std::size_t operation);
  // By the name of the cell and CellOperation.
  std::map<std::string, std::vector<double>> gates;
  std::map<std::string, at::Tensor> weights;
  std::map<std::string, at::Tensor> statistics;

  // Goes on in float64, with copies of all weights that take no gradient.
  void widen();

  // Runs a block on what the block before puts out; the last one puts out logits.
  at::Tensor run_block(std::size_t block, at::Tensor x, bool training);
  at::Tensor classify(at::Tensor x, bool training);

  // Takes a step of plain descent on four micro-batches, whose gradients are added as
  // ((0 + 1) + (2 + 3)). Weights that nothing depends on stay. Returns the step's loss.
  double step(const std::vector<Samples>& micro_batches, double rate);

 private:
  at::Tensor convolve(const std::string& name, const at::Tensor& x, std::int64_t stride,
                      bool training);
  at::Tensor run_operation(const CellShape& cell, std::size_t operation, const at::Tensor& x,
                           bool training);

  MobilenetShape shape_;
  bool is_supernet_;
};

}  // namespace frazil
