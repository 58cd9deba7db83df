#pragma once
// Model compression (MC) as a workload of the published shape, not of published costs: Pipe-BD's
// code and block times of it were never released. The teacher is VGG-16 (Simonyan & Zisserman 2015,
// configuration D), the student of a block replaces its 3x3 convolution by a depthwise and a
// pointwise one (Blakeney et al. 2020). Blocks are the 13 convolutions.
//
// A block's time is that of its multiply-adds, and kLaunch for each of its kernels: 3 of the
// teacher (convolution, normalization, activation), 24 of the student (6 forward, 12 backward, 6
// updates). A student's backward has twice its forward's multiply-adds. The full batch is 256, the
// default of Pipe-BD's code.

#include <cstdint>

#include "planner/reproduce/pipe_bd/pipe_bd_workloads.h"

namespace frazil {

inline constexpr std::int64_t kMultiplyAddsPerNs = 5'000;  // 10 TFLOP/s
inline constexpr Duration kLaunch{5'000};

enum class ImageSet : std::uint8_t { kCifar10, kImageNet };

// Returns the times and bytes of the blocks, on images of 32 or 224 pixels' side.
BlockwiseTimes make_compression_times(ImageSet images);
// Returns the loader, which works ahead. It takes for an image what that of the search takes:
// on CIFAR-10 with its epoch over 45,000 images, on ImageNet as fitted.
Loader make_compression_loader(ImageSet images);

}  // namespace frazil
