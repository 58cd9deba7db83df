#pragma once
// Words that flags take and no others. Whoever reads such a flag and whoever describes it, for
// --help and for the completion of shells, have them from here.

#include <array>
#include <string_view>

namespace frazil {

inline constexpr std::array<std::string_view, 2> kDeviceWords = {"cpu", "cuda"};
inline constexpr std::array<std::string_view, 2> kKernelWords = {"fastest", "portable"};
inline constexpr std::array<std::string_view, 3> kTransportWords = {"sockets", "gloo", "nccl"};
inline constexpr std::array<std::string_view, 2> kReductionWords = {"exact", "fast"};
inline constexpr std::array<std::string_view, 2> kObjectiveWords = {"makespan", "span"};
// Beside the names of schedules: searched orders, and a group of schedules.
inline constexpr std::string_view kSearchWord = "search";
inline constexpr std::string_view kPytorchWord = "pytorch";

}  // namespace frazil
