#pragma once
// A small convolutional network with batch normalisation, written by hand: layers with one norm and
// with two of different momenta, one whose weights do not train, one without parameters, a skip.

#include <memory>

#include "tests/exec/models/plain_training.h"

namespace frazil {

// If `eager` is given, it holds the running statistics of each layer, and a forward in training
// updates them in place as PyTorch's module does.
TestModel normed_cnn_model(const std::shared_ptr<LayerTensors>& eager = nullptr);

// Returns the statistics that a model starts with, by layer.
LayerTensors start_statistics(const ModelSpec& model);

}  // namespace frazil
