#include "planner/reproduce/pipe_bd/compression_workload.h"

#include <array>

namespace frazil {
namespace {

constexpr int kFullBatch = 256;
constexpr int kQuarterBatch = kFullBatch / 4;
constexpr int kBytesPerNumber = 4;
constexpr int kTeacherKernels = 3;
constexpr int kStudentKernels = 24;

struct VggLayer {
  int channels;  // of its output
  bool pools;    // halves height and width behind it
};
constexpr std::array<VggLayer, 13> kVgg16 = {{{64, false},
                                              {64, true},
                                              {128, false},
                                              {128, true},
                                              {256, false},
                                              {256, false},
                                              {256, true},
                                              {512, false},
                                              {512, false},
                                              {512, true},
                                              {512, false},
                                              {512, false},
                                              {512, true}}};

// Multiply-adds of a sample's forward, and what the block holds.
struct BlockWork {
  std::int64_t teacher = 0;
  std::int64_t student = 0;
  BlockBytes bytes;
};

std::vector<BlockWork> list_blocks(int side) {
  std::vector<BlockWork> blocks;
  std::int64_t inputs = 3;
  for (const VggLayer& layer : kVgg16) {
    const std::int64_t outputs = layer.channels;
    const std::int64_t pixels = std::int64_t{side} * side;
    const std::int64_t weights = 9 * inputs * outputs;
    const std::int64_t separable = 9 * inputs + inputs * outputs;
    if (layer.pools) side /= 2;
    const auto bytes = [](std::int64_t numbers) { return Bytes{numbers * kBytesPerNumber}; };
    // The student saves the inputs of both convolutions and of both normalizations.
    blocks.push_back({.teacher = weights * pixels,
                      .student = separable * pixels,
                      .bytes = {.teacher = bytes(weights),
                                .student = bytes(separable),
                                .state = bytes(separable),
                                .stash = bytes((3 * inputs + outputs) * pixels),
                                .output = bytes(outputs * side * side)}});
    inputs = outputs;
  }
  return blocks;
}

Duration time_of(std::int64_t multiply_adds, int kernels) {
  return Duration{multiply_adds / kMultiplyAddsPerNs} + kLaunch * kernels;
}

}  // namespace

BlockwiseTimes make_compression_times(ImageSet images) {
  const std::vector<BlockWork> blocks = list_blocks(images == ImageSet::kCifar10 ? 32 : 224);
  BlockwiseTimes times;
  times.batches = {kQuarterBatch, kFullBatch};
  for (const int batch : times.batches) {
    auto& teacher = times.teacher.emplace_back();
    auto& student = times.student.emplace_back();
    for (const BlockWork& block : blocks) {
      teacher.push_back(time_of(block.teacher * batch, kTeacherKernels));
      student.push_back(time_of(3 * block.student * batch, kStudentKernels));
    }
  }
  for (const BlockWork& block : blocks) times.bytes.push_back(block.bytes);
  return times;
}

Loader make_compression_loader(ImageSet images) {
  const bool is_small = images == ImageSet::kCifar10;
  Loader loader = is_small ? make_cifar_loader() : make_imagenet_loader();
  loader.ahead = make_imagenet_loader().ahead;
  // An epoch of the search on CIFAR-10 leaves out the 5,000 images that it validates on. The
  // loader's time is of a step in an epoch of 100 steps.
  constexpr int kSearchImages = 45'000;
  loader.alone = is_small ? loader.alone * 100 * kFullBatch / kSearchImages
                          : loader.alone * kFullBatch / kBlockMeans.front().batch;
  return loader;
}

}  // namespace frazil
