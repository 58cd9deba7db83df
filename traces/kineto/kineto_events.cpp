#include "traces/kineto/kineto_events.h"

#include <algorithm>
#include <array>
#include <utility>

namespace frazil {

EventCategory category_of_event(std::string_view text) {
  if (text == "cpu_op" || text == "Operator") return EventCategory::kOperation;
  if (text == "user_annotation") return EventCategory::kAnnotation;
  if (text == "python_function") return EventCategory::kPython;
  if (text.ends_with("_runtime") || text.ends_with("_driver") || text == "Runtime") {
    return EventCategory::kCall;
  }
  constexpr std::array<std::string_view, 6> kDevice = {"kernel", "gpu_memcpy", "gpu_memset",
                                                       "Kernel", "Memcpy",     "Memset"};
  const bool is_device = std::find(kDevice.begin(), kDevice.end(), text) != kDevice.end();
  return is_device ? EventCategory::kDevice : EventCategory::kOther;
}

std::int64_t element_bytes(std::string_view type) {
  using Size = std::pair<std::string_view, std::int64_t>;
  constexpr std::array<Size, 16> kSizes = {{{"float", 4},
                                            {"c10::BFloat16", 2},
                                            {"c10::Half", 2},
                                            {"double", 8},
                                            {"long int", 8},
                                            {"long", 8},
                                            {"int", 4},
                                            {"short", 2},
                                            {"short int", 2},
                                            {"bool", 1},
                                            {"unsigned char", 1},
                                            {"signed char", 1},
                                            {"c10::complex<float>", 8},
                                            {"c10::complex<double>", 16},
                                            {"c10::Float8_e4m3fn", 1},
                                            {"c10::Float8_e5m2", 1}}};
  const auto* const size = std::find_if(kSizes.begin(), kSizes.end(),
                                        [&](const Size& known) { return known.first == type; });
  return size == kSizes.end() ? 0 : size->second;
}

std::optional<std::size_t> data_input(std::string_view operation) {
  constexpr std::array<std::string_view, 10> kFirst = {
      "aten::linear",     "aten::bilinear",         "aten::conv1d",
      "aten::conv2d",     "aten::conv3d",           "aten::conv_transpose1d",
      "aten::batch_norm", "aten::conv_transpose2d", "aten::conv_transpose3d",
      "aten::layer_norm"};
  if (operation == "aten::addmm" || operation == "aten::embedding") return 1;
  const bool is_first = std::find(kFirst.begin(), kFirst.end(), operation) != kFirst.end();
  return is_first ? std::optional<std::size_t>{0} : std::nullopt;
}

std::optional<RangeKind> kind_of_range(EventCategory category, std::string_view name) {
  if (category == EventCategory::kPython) {
    if (name.starts_with("nn.Module: ")) return RangeKind::kModule;
    return std::nullopt;
  }
  if (name.starts_with("ProfilerStep#")) return RangeKind::kStep;
  if (name.starts_with("Optimizer.step#")) return RangeKind::kUpdate;
  return std::nullopt;
}

}  // namespace frazil
