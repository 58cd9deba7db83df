#pragma once
// The names and limits that reader and writer of a run configuration share.

#include <array>
#include <string_view>

namespace frazil {

inline constexpr std::string_view kRunFormat = "frazil.run";
inline constexpr int kRunVersion = 1;

// The names by enumerator.
inline constexpr std::array<std::string_view, 3> kDataKinds{"digits", "synthetic",
                                                            "random-hierarchy"};
inline constexpr std::array<std::string_view, 2> kOptimizerKinds{"adamw", "sgd"};
inline constexpr std::array<std::string_view, 3> kRateSchedules{"cosine", "linear", "constant"};
inline constexpr std::array<std::string_view, 2> kReductionModes{"exact", "fast"};
inline constexpr std::array<std::string_view, 2> kBatchGrowths{"none", "with-pipelines"};
inline constexpr std::array<std::string_view, 2> kMessageOrders{"by-tag", "as-sent"};
inline constexpr std::array<std::string_view, 2> kAugmentationKinds{"none", "shift"};
inline constexpr std::array<std::string_view, 2> kCacheKinds{"off", "on"};
inline constexpr std::array<std::string_view, 2> kCacheAdmissions{"predicted", "always"};
inline constexpr std::array<std::string_view, 2> kCacheSharing{"host", "process"};

}  // namespace frazil
