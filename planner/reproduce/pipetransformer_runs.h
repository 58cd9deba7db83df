#pragma once
// Simulates whole the trainings that PipeTransformer (He et al. 2021) published, and computes the
// speed-ups by which they are compared.

#include <vector>

#include "planner/reproduce/elastic_run.h"

namespace frazil {

inline constexpr int kVitLayers = 12;
inline constexpr int kPublishedEpochs = 10;
inline constexpr int kSquadEpochs = 3;
inline constexpr double kPublishedAlpha = 1.0 / 3;

inline constexpr ElasticParts kAllParts{};
inline constexpr ElasticParts kFreezingAlone{
    .auto_pipe = false, .auto_dp = false, .auto_cache = false};
inline constexpr ElasticParts kWithoutCache{.auto_cache = false};
inline constexpr ElasticParts kWithoutReplicas{.auto_dp = false};

// Returns the training of Fig. 9: ViT-B/16 on ImageNet, 400 samples per pipeline.
Training imagenet_training();
// Returns ViT-B/16 on CIFAR, 320 samples per pipeline.
Training cifar_training(int classes);
// Returns BERT-large on SQuAD 1.1, sequences of 256, 64 samples per pipeline.
Training squad_training();
// Returns L_f by epoch for `alpha` (AlphaFreeze in planner/freezing/freeze_policy.h).
std::vector<int> freeze_schedule(int layers, double alpha, int epochs);

// Simulates the training with nothing frozen: K = 8, R = 2 throughout.
std::vector<Epoch> simulate_baseline(const Training& training, int epochs);
// Returns the training time of `base` / that of `run`, without the time of transitions.
double speed_up(const std::vector<Epoch>& base, const std::vector<Epoch>& run,
                std::int64_t samples);
// Returns the training time with the time of transitions, in ns.
double wall_clock(const std::vector<Epoch>& epochs, std::int64_t samples);
// Returns the wall clock of the baseline / that of a run with all parts.
double wall_clock_speed_up(const Training& training, const std::vector<int>& frozen);

}  // namespace frazil
