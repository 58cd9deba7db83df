#pragma once
// "data" of a run configuration (exec/config/run_config.h): which data a run learns.

#include <cstdint>
#include <string>

#include "exec/data/random_hierarchy.h"
#include "exec/data/tensor_samples.h"

namespace frazil {

struct DataConfig {
  enum class Kind { kDigits, kSynthetic, kRandomHierarchy, kTensors };
  Kind kind = Kind::kDigits;
  std::string path;  // of kDigits; relative to the configuration file; empty: the shipped file
  int train_samples = 256;  // of the kinds that are made
  int test_samples = 64;
  std::uint64_t seed = 0;
  HierarchyConfig hierarchy = {};  // of kRandomHierarchy
  TensorFiles files = {};          // of kTensors
  int validation_percent = 0;
  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

}  // namespace frazil
