#pragma once
// The trainings that PipeTransformer (He et al. 2021) published, simulated whole, and what they are
// compared by.

#include <vector>

#include "planner/reproduce/elastic_run.h"

namespace frazil {

inline constexpr int kVitLayers = 12;
inline constexpr int kPublishedEpochs = 10;
inline constexpr double kPublishedAlpha = 1.0 / 3;

inline constexpr ElasticParts kAllParts{};
inline constexpr ElasticParts kFreezingAlone{
    .auto_pipe = false, .auto_dp = false, .auto_cache = false};
inline constexpr ElasticParts kWithoutCache{.auto_cache = false};
inline constexpr ElasticParts kWithoutReplicas{.auto_dp = false};

// ViT-B/16 on ImageNet, 400 samples a pipeline: the training of Fig. 9.
Training imagenet_training();
// ViT-B/16 on CIFAR, 320 samples a pipeline.
Training cifar_training(int classes);
// By epoch L_f for alpha.
std::vector<int> freeze_schedule(int layers, double alpha, int epochs);

// Nothing frozen: K 8, R 2 throughout.
std::vector<Epoch> simulate_baseline(const Training& training, int epochs);
// Of `base` over `run`, training alone.
double speed_up(const std::vector<Epoch>& base, const std::vector<Epoch>& run,
                std::int64_t samples);
// ns, transitions charged.
double wall_clock(const std::vector<Epoch>& epochs, std::int64_t samples);
// Baseline over a run with all parts, transitions charged to both.
double wall_clock_speed_up(const Training& training, const std::vector<int>& frozen);

}  // namespace frazil
