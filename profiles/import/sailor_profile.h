#pragma once
// clang-format off
// Reads Sailor's measured layers (Strati et al., SOSP 2025): times by micro-batch size and
// tensor-parallel degree, sizes by degree, and the model that the training configuration names.
//   times    {"8": {"4": {"0": [forward, backward, update], ...}}}: micro-batch size, degree,
//            layer; seconds of one of the GPUs that share the layer. The file of a model and GPU
//            holds this object alone; the simulator's file holds it below {"MODEL": {"GPU": ...}}
//   sizes    {"MODEL": {"4": {"0": {"params_bytes": ..., "act_output_bytes": ..., ...}, ...}}}:
//            degree, layer; bytes of one GPU, activations of one sample
// Keys are numbers written as strings, in any order; every row has layers 0 to L-1. The readers
// throw InputError with file, line and path.
// clang-format on

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

struct SailorLayerTimes {
  Duration forward{0};
  Duration backward{0};
  Duration update{0};
  friend bool operator==(const SailorLayerTimes&, const SailorLayerTimes&) = default;
};

// Times by tensor-parallel degree, then micro-batch size, then layer.
using SailorTimes = std::map<int, std::map<int, std::vector<SailorLayerTimes>>>;

// Reads the file of one model and GPU; times are rounded to the nearest nanosecond. Throws also
// when a row has another number of layers than the other rows.
SailorTimes parse_sailor_times(std::string_view text, const std::string& file);
// Reads the simulator's file, which holds several models and GPUs.
SailorTimes parse_sailor_times(std::string_view text, const std::string& file,
                               const std::string& model, const std::string& gpu);

struct SailorLayerSizes {
  Bytes parameters;
  Bytes output;  // to the next layer, whole, whatever the degree
  Bytes input;
  Bytes stash;  // saved activations: what the forward leaves allocated
  friend bool operator==(const SailorLayerSizes&, const SailorLayerSizes&) = default;
};

// Sizes by tensor-parallel degree, then layer.
using SailorSizes = std::map<int, std::vector<SailorLayerSizes>>;

SailorSizes parse_sailor_sizes(std::string_view text, const std::string& file,
                               const std::string& model);

struct SailorConfig {
  std::string model;
  int layers = 0;  // embedding and head included
  std::string optimizer;
  friend bool operator==(const SailorConfig&, const SailorConfig&) = default;
};

SailorConfig parse_sailor_config(std::string_view text, const std::string& file);

// Makes the profile of one degree: a chain of the layers, a block each, a loss on the last, times
// and bytes of one of the GPUs. The whole backward is split by the rule of
// profiles/split_backward.h. A layer's update is the median over the micro-batch sizes (the lower
// of two), and its stash, which Sailor measures for one sample, grows in proportion to samples. The
// optimizer state is Adam's: two moments of the parameters' size. Throws InputError naming `file`
// where times, sizes and configuration differ in layers or lack the degree, and for another
// optimizer.
ModelProfile make_sailor_profile(const SailorConfig& config, const SailorTimes& times,
                                 const SailorSizes& sizes, int degree, const std::string& file);

}  // namespace frazil
