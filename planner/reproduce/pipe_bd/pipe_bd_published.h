#pragma once
// The published numbers of Pipe-BD (Jang et al. 2023): the charts of its poster, read off the
// vector paths, and the scatter plots of block times in its repository, read off the pixels.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/partition/hybrid_distribution.h"
#include "profiles/units.h"

namespace frazil {

// The methods that Pipe-BD compares: data parallelism block by block, layerwise scheduling, teacher
// relaying, relaying with decoupled parameter update, and both with automatic hybrid distribution.
enum class BlockwiseMethod : std::uint8_t { kDp, kLs, kTr, kTrDpu, kAhd };
inline constexpr std::array kBlockwiseMethods = {BlockwiseMethod::kDp, BlockwiseMethod::kLs,
                                                 BlockwiseMethod::kTr, BlockwiseMethod::kTrDpu,
                                                 BlockwiseMethod::kAhd};
std::string_view method_name(BlockwiseMethod method);

// Speed-ups over data parallelism in thousandths, in the order of kBlockwiseMethods.
struct SpeedupChart {
  std::string_view task;
  std::string_view dataset;
  std::array<int, kBlockwiseMethods.size()> thousandths;
};
inline constexpr std::array kSpeedups = {
    SpeedupChart{"NAS", "CIFAR-10", {1000, 1931, 2412, 3078, 3078}},
    SpeedupChart{"NAS", "ImageNet", {1000, 494, 3029, 3140, 4373}},
    SpeedupChart{"MC", "CIFAR-10", {1000, 2038, 5618, 5832, 7383}},
    SpeedupChart{"MC", "ImageNet", {1000, 498, 3976, 4221, 7556}},
};

// The parts of one device's epoch, in hundredths of a second; the task is taken to be NAS on
// CIFAR-10.
struct EpochShares {
  std::string_view name;
  int load = 0;
  int teacher = 0;
  int student = 0;
  int idle = 0;
};
inline constexpr EpochShares kDataParallelEpoch = {"data parallel", 244, 718, 1990, 0};
inline constexpr std::array kPipeBdEpoch = {
    EpochShares{"rank 0", 94, 157, 755, 0},
    EpochShares{"rank 1", 0, 103, 707, 226},
    EpochShares{"rank 2", 0, 135, 840, 88},
    EpochShares{"rank 3", 0, 58, 511, 475},
};

// Mean time of each block of the ImageNet search, teacher and student together, in tenths of a ms.
inline constexpr int kPublishedBlocks = 6;
struct BlockMeans {
  int batch = 0;  // samples on each of g devices: 240 / g
  std::array<int, kPublishedBlocks> tenths;
};
inline constexpr std::array kBlockMeans = {
    BlockMeans{240, {417, 182, 101, 132, 100, 38}},
    BlockMeans{120, {217, 103, 70, 81, 77, 31}},
    BlockMeans{80, {159, 77, 64, 69, 69, 27}},
    BlockMeans{60, {129, 67, 61, 64, 65, 26}},
};

struct PublishedSchedule {
  std::string_view gpu;
  HybridPlan plan;  // its cost follows from kBlockMeans
};
// Lists the schedules that the poster shows.
std::vector<PublishedSchedule> list_published_schedules();

}  // namespace frazil
