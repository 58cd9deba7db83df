#pragma once
// Sailor's measured layers (Strati et al., SOSP 2025): times by micro-batch size and degree of
// tensor parallelism, sizes by that degree, and what the training configuration says of the model.
//   times    {"8": {"4": {"0": [forward, backward, update], ...}}}: micro-batch size, degree,
//            layer; seconds, of one of the GPUs that share the layer. The file of a model and GPU
//            holds that alone; the simulator's holds it below {"MODEL": {"GPU": ...}}
//   sizes    {"MODEL": {"4": {"0": {"params_bytes": ..., "act_output_bytes": ..., ...}, ...}}}:
//            degree, layer; bytes of one GPU, activations of one sample
// Keys are numbers written as strings, in any order; every row has layers 0 to L-1.

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

// By degree of tensor parallelism, then micro-batch size, then layer.
using SailorTimes = std::map<int, std::map<int, std::vector<SailorLayerTimes>>>;

// To whole nanoseconds, nearest. Throws InputError with file, line and path, also where a row has
// other layers than the rest.
SailorTimes parse_sailor_times(std::string_view text, const std::string& file);
// Of the form with models and GPUs.
SailorTimes parse_sailor_times(std::string_view text, const std::string& file,
                               const std::string& model, const std::string& gpu);

struct SailorLayerSizes {
  Bytes parameters;
  Bytes output;  // what it hands to the next layer, whole, whatever the degree
  Bytes input;
  Bytes stash;  // what its forward leaves allocated
  friend bool operator==(const SailorLayerSizes&, const SailorLayerSizes&) = default;
};

// By degree of tensor parallelism, then layer.
using SailorSizes = std::map<int, std::vector<SailorLayerSizes>>;

SailorSizes parse_sailor_sizes(std::string_view text, const std::string& file,
                               const std::string& model);

struct SailorConfig {
  std::string model;
  int layers = 0;  // with embedding and head
  std::string optimizer;
  friend bool operator==(const SailorConfig&, const SailorConfig&) = default;
};

SailorConfig parse_sailor_config(std::string_view text, const std::string& file);

// The profile of one degree: a chain of the layers, a block each, a loss on the last, times and
// bytes of one of the GPUs. The source measures no split backward, no update by layer size (the
// median over the rows is taken, the lower of two) and the stash of one sample (taken in proportion
// to samples). Adam keeps two moments in the parameters' size; another optimizer is refused.
// Throws InputError naming `file` where times, sizes and configuration differ in layers, or lack
// the degree.
ModelProfile make_sailor_profile(const SailorConfig& config, const SailorTimes& times,
                                 const SailorSizes& sizes, int degree, const std::string& file);

}  // namespace frazil
