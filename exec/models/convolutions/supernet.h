#pragma once
// make_supernet() makes a network to search in, as ProxylessNAS does (Cai, Zhu & Han, 2019): a
// mobilenet (exec/models/convolutions/mobilenet.h) each of whose cells holds all operations that it
// could have, and an architecture parameter for each. Their softmax p says how probable an
// operation is; they start at 0, where all are equally probable.
//
// In training a cell runs one operation in a step, drawn by p. The draw depends on (seed, step,
// layer) and p alone: all micro-batches, replicas and plans draw the same, and a forward that is
// run again too. In evaluation, and in a frozen block, it runs the most probable one, of equals the
// first.
//
// Steps are of two kinds. A weight step moves weights and running statistics of what was drawn, and
// of the stem, the head and the classifier; nothing else, not even by momentum or weight decay
// (LayerSpec::moved). Step s (from 0) is an architecture step where s >= architecture_from and s +
// 1 is a multiple of architecture_every. It moves architecture parameters alone, by their gate
// gradients (exec/models/convolutions/gates.h): weights, their moments and all running statistics
// stay. Each operation then runs on the micro-batch, normalised by its own statistics; a gradient
// reaches earlier cells through the drawn operation and the skip. It learns from the run's own
// batch, where ProxylessNAS takes one of its validation samples.
//
// Parameters are named as those of a mobilenet, with the operation behind the cell:
// "stage1.0.k5e3.expand.weight"; a cell's architecture parameters are "stage1.0.architecture", in
// the order of CellOperation. A cell without a skip has no zero.

#include <cstddef>
#include <vector>

#include "exec/models/convolutions/mobilenet.h"

namespace frazil {

struct SupernetConfig {
  MobilenetShape shape;
  int architecture_every = 5;  // 0: no architecture steps
  int architecture_from = 0;   // the first step that may be one
  friend bool operator==(const SupernetConfig&, const SupernetConfig&) = default;
};

// Requires: as make_mobilenet().
ModelSpec make_supernet(const SupernetConfig& config);

bool is_architecture_step(const SupernetConfig& config, Step step);

// Returns how probable the operations of a cell are, given its architecture parameters.
std::vector<double> find_probabilities(const at::Tensor& architecture);
// Returns the place of the operation that a cell runs in training. The micro-batch of the key does
// not matter.
std::size_t draw_operation(const at::Tensor& architecture, LayerId layer, const RandomKey& key);
// Returns the place of the operation that it runs in evaluation.
std::size_t most_probable(const at::Tensor& architecture);

}  // namespace frazil
