#include "planner/reproduce/pipetransformer_runs.h"

#include "planner/freezing/freeze_policy.h"
#include "planner/reproduce/rtx5000.h"

namespace frazil {
namespace {

constexpr std::int64_t kImagenetSamples = 1'281'167;
constexpr std::int64_t kCifarSamples = 50'000;
constexpr std::int64_t kSquadSamples = 87'600;

}  // namespace

Training imagenet_training() {
  return {.profile = make_rtx5000_vision(vit_b16(1000)),
          .pipeline_batch = 400,
          .samples = kImagenetSamples};
}

std::vector<int> freeze_schedule(int layers, double alpha, int epochs) {
  std::vector<int> frozen;
  frozen.reserve(static_cast<std::size_t>(epochs));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    frozen.push_back(alpha_frozen_layers(layers, alpha, epoch));
  }
  return frozen;
}

Training cifar_training(int classes) {
  return {.profile = make_rtx5000_vision(vit_b16(classes)),
          .pipeline_batch = 320,
          .samples = kCifarSamples};
}

Training squad_training() {
  return {
      .profile = make_rtx5000_bert(bert_large(), BertTask::kQuestionAnswering, /*sequence=*/256),
      .pipeline_batch = 64,
      .samples = kSquadSamples,
      .cache_from = 5};
}

double speed_up(const std::vector<Epoch>& base, const std::vector<Epoch>& run,
                std::int64_t samples) {
  return static_cast<double>(training_time(base, samples).count()) /
         static_cast<double>(training_time(run, samples).count());
}

std::vector<Epoch> simulate_baseline(const Training& training, int epochs) {
  return simulate_run(training, std::vector<int>(static_cast<std::size_t>(epochs), 0),
                      kFreezingAlone);
}

double wall_clock(const std::vector<Epoch>& epochs, std::int64_t samples) {
  return static_cast<double>((training_time(epochs, samples) + transition_time(epochs)).count());
}

double wall_clock_speed_up(const Training& training, const std::vector<int>& frozen) {
  const auto epochs = static_cast<int>(frozen.size());
  return wall_clock(simulate_baseline(training, epochs), training.samples) /
         wall_clock(simulate_run(training, frozen, kAllParts), training.samples);
}

}  // namespace frazil
