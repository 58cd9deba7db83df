#include "planner/reproduce/pipe_bd/pipe_bd_published.h"

#include "profiles/error.h"

namespace frazil {

std::string_view method_name(BlockwiseMethod method) {
  switch (method) {
    case BlockwiseMethod::kDp:
      return "DP";
    case BlockwiseMethod::kLs:
      return "LS";
    case BlockwiseMethod::kTr:
      return "TR";
    case BlockwiseMethod::kTrDpu:
      return "TR+DPU";
    case BlockwiseMethod::kAhd:
      return "TR+DPU+AHD";
  }
  fail_ensure(__FILE__, __LINE__, "an unknown method");
}

std::vector<PublishedSchedule> list_published_schedules() {
  return {{"RTX 2080 Ti", {{2, 1, 1}, {0, 1, 3, 6}, std::chrono::microseconds(28'300)}},
          {"RTX A6000", {{3, 1}, {0, 3, 6}, std::chrono::microseconds(30'000)}}};
}

}  // namespace frazil
