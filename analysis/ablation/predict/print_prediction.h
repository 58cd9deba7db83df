#pragma once
// Prints a predicted ablation, for people (a table) and for programs (one JSON object).

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/ablation/predict/predict_ablation.h"

namespace frazil {

struct PredictionAnswer {
  const PredictedAblation& ablation;
  Setting setting;
  std::uint64_t seed = 1;
  // Sentences on what the numbers take for given, beside what the profile and the cluster say.
  std::vector<std::string> notes = {};
};

// Prints a row for each arm: its time, how many times as fast as `unfrozen` it is, the shares of
// steps, transitions and filling, the time of the devices that its plans use and of all devices,
// and the plans that it holds. A star marks the fastest arm. Then come the reasons of arms without
// times, the limit by compute, and notes.
std::string print_prediction(const PredictionAnswer& answer);
std::string prediction_json(const PredictionAnswer& answer);

}  // namespace frazil
