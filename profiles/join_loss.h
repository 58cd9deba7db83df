#pragma once
// Joins a loss that is a layer of its own to the layer before it. Programs that compute the loss
// themselves (PyTorch's pipelining, torchtitan) have no stage that holds nothing else, so their
// plans are best made of such a profile.

#include "profiles/model_profile.h"

namespace frazil {

// Joins the last layer to the one before, which keeps its name: times and saved activations of both
// add up, and the last layer's backward is part of I, and of W where the inputs need no gradient.
// Throws InputError, "--join-loss" in its found, if there is no layer before, if the last layer has
// parameters, reads from other layers than that one, or was measured at other micro-batch sizes.
void join_loss(ModelProfile& profile);

}  // namespace frazil
