#include "planner/reproduce/own_plans/own_tables.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "planner/reproduce/pipetransformer_runs.h"
#include "planner/reproduce/rtx5000.h"

namespace frazil {
namespace {

constexpr Bytes gibibytes(std::int64_t count) { return Bytes{count << 30}; }

OwnTraining own_imagenet_training() {
  const Training theirs = imagenet_training();
  return {.name = "ViT-B/16 on ImageNet",
          .profile = theirs.profile,
          .batch_size = 2 * theirs.pipeline_batch,
          .micro_batch_sizes = {10, 25, 50},
          .samples = theirs.samples,
          .frozen = freeze_schedule(kVitLayers, kPublishedAlpha, kPublishedEpochs),
          .device_memory = kRtx5000Memory};
}

OwnTraining own_squad_training(Bytes device_memory) {
  const Training theirs = squad_training();
  return {.name = "BERT-large on SQuAD",
          .profile = theirs.profile,
          .batch_size = 2 * theirs.pipeline_batch,
          .micro_batch_sizes = {2, 4, 8},
          .samples = theirs.samples,
          .frozen = freeze_schedule(bert_large().transformer.layers, kPublishedAlpha, kSquadEpochs),
          .device_memory = device_memory};
}

OwnTraining own_cifar_training(const std::string& name, const VisionShape& shape,
                               Bytes device_memory) {
  const Training theirs = cifar_training(shape.classes);
  return {.name = name + " on CIFAR-100",
          .profile = make_rtx5000_vision(shape),
          .batch_size = 2 * theirs.pipeline_batch,
          .micro_batch_sizes = {2, 4, 8},
          .samples = theirs.samples,
          .frozen = freeze_schedule(shape.transformer.layers, kPublishedAlpha, kPublishedEpochs),
          .device_memory = device_memory};
}

std::string name_own(const OwnTraining& training) {
  const double rate = static_cast<double>(training.cache_of_host.count) / 1e9;
  return fmt::format("Frazil, cache at {:.1f} GB/s a host{}", rate,
                     training.cache_of_host == kCacheOfAHost ? ", as theirs" : "");
}

// Returns what each host caches: the features of half the samples.
Bytes cache_of_host(const OwnTraining& training) {
  const Bytes of_sample = find_feature_bytes(training.profile, 1).value_or(Bytes{});
  return Bytes{of_sample.count * training.samples / 2};
}

Duration round_to_ns(double ns) { return Duration{std::llround(ns)}; }

std::string list_shapes(const std::vector<Epoch>& epochs) {
  std::string text;
  const Epoch* before = nullptr;
  for (const Epoch& epoch : epochs) {
    if (before == nullptr || before->length != epoch.length) {
      text += fmt::format("{}{} x {}", text.empty() ? "" : " -> ", epoch.length, epoch.pipelines);
    }
    before = &epoch;
  }
  return text + " gpipe";
}

OwnRow row_of_theirs(std::string name, const std::vector<Epoch>& epochs, std::int64_t samples) {
  return {std::move(name), list_shapes(epochs), round_to_ns(wall_clock(epochs, samples))};
}

OwnRow row_of(std::string name, const OwnRun& run) {
  return {std::move(name), run.plans, run.parts.total(), run.parts};
}

// Returns this project's run of the training on hosts with so much room.
HostCase plan_on(OwnTraining training, const std::string& room_in_words, HostRoom room) {
  training.room_of_host = room;
  const OwnRun run = plan_own_runs(training).elastic;
  const bool caches = run.parts.writing > kNoTime;
  return {row_of(fmt::format("Frazil, {}{}", room_in_words, caches ? "" : ": nothing cached"), run),
          room};
}

std::vector<HostCase> plan_hosts(const Training& theirs, const OwnTraining& training) {
  const HostRoom disk{.memory = {}, .disk = HostRoom{}.memory};
  return {{row_of_theirs("PipeTransformer, nothing cached",
                         simulate_run(theirs, training.frozen, kWithoutCache), theirs.samples),
           {.memory = {}, .disk = {}}},
          plan_on(training, "192 GB a host", {.memory = Bytes{192'000'000'000}, .disk = {}}),
          plan_on(training, "96 GB a host", {.memory = Bytes{96'000'000'000}, .disk = {}}),
          plan_on(training, "cache on drives of 1 GB/s a host", disk)};
}

}  // namespace

double OwnComparison::compute_limit() const {
  return static_cast<double>(unfrozen().parts->compute.count()) /
         static_cast<double>(own().parts->compute.count());
}

OwnComparison compare_own_plans() {
  const Training theirs = imagenet_training();
  const OwnTraining training = own_imagenet_training();
  OwnTraining slow = training;
  slow.cache_of_host = kCacheOfAHost;
  const OwnRuns runs = plan_own_runs(training);
  return {.title = fmt::format("Frazil's own plans on the same devices and trace: {}, {} epochs, "
                               "global batch {} kept, everything charged",
                               training.name, training.frozen.size(), training.batch_size),
          .cache_of_host = cache_of_host(training),
          .rows = {row_of_theirs("GPipe, nothing freezes",
                                 simulate_baseline(theirs, kPublishedEpochs), theirs.samples),
                   row_of("best plan, nothing freezes", runs.unfrozen),
                   row_of_theirs("PipeTransformer, its batch growing",
                                 simulate_run(theirs, training.frozen, kAllParts), theirs.samples),
                   row_of(name_own(slow), plan_own_runs(slow).elastic),
                   row_of(name_own(training), runs.elastic)},
          .hosts = plan_hosts(theirs, training)};
}

std::vector<OwnCase> plan_cases() {
  const VisionShape large{.transformer = {.layers = 24, .hidden = 1024, .intermediate = 4096},
                          .classes = 100};
  const VisionShape huge{.transformer = {.layers = 32, .hidden = 1280, .intermediate = 5120},
                         .patch = 14,
                         .classes = 100};
  std::vector<OwnCase> cases;
  for (const OwnTraining& training :
       {own_squad_training(kRtx5000Memory), own_cifar_training("ViT-L/16", large, kRtx5000Memory),
        own_squad_training(gibibytes(11)), own_cifar_training("ViT-H/14", huge, kRtx5000Memory),
        own_squad_training(gibibytes(4)), own_cifar_training("ViT-L/16", large, gibibytes(4))}) {
    cases.push_back({training.name, training.device_memory, training.micro_batch_sizes,
                     count_fitting_samples(training), cache_of_host(training),
                     plan_own_runs(training)});
  }
  return cases;
}

}  // namespace frazil
