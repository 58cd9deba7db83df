#pragma once
// The names and limits that reader and writer of a run configuration share.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "profiles/json.h"

namespace frazil {

inline constexpr std::string_view kRunFormat = "frazil.run";
inline constexpr int kRunVersion = 1;

// The names by enumerator.
inline constexpr std::array<std::string_view, 4> kDataKinds{"digits", "synthetic",
                                                            "random-hierarchy", "tensors"};
inline constexpr std::array<std::string_view, 2> kOptimizerKinds{"adamw", "sgd"};
inline constexpr std::array<std::string_view, 3> kRateSchedules{"cosine", "linear", "constant"};
inline constexpr std::array<std::string_view, 2> kReductionModes{"exact", "fast"};
inline constexpr std::array<std::string_view, 2> kBatchGrowths{"none", "with-pipelines"};
inline constexpr std::array<std::string_view, 2> kReplannings{"trajectory", "greedy"};
inline constexpr std::array<std::string_view, 2> kMessageOrders{"by-tag", "as-sent"};
inline constexpr std::array<std::string_view, 3> kAugmentationKinds{"none", "shift", "crop"};
inline constexpr std::array<std::string_view, 2> kCacheKinds{"off", "on"};
inline constexpr std::array<std::string_view, 2> kDriftKinds{"off", "on"};
inline constexpr std::array<std::string_view, 2> kCacheAdmissions{"predicted", "always"};
inline constexpr std::array<std::string_view, 2> kCacheSharing{"host", "process"};

// Returns the name of an enumerator as a text of JSON.
template <std::size_t N>
std::string name_text(const std::array<std::string_view, N>& names, std::size_t index) {
  return json_string(names.at(index));
}

}  // namespace frazil
