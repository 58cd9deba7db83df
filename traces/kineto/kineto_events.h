#pragma once
// The words of PyTorch's profiler: what its categories, types and names of ranges mean. Those of
// versions 1.8 to 2.x.

#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/kineto/kineto_trace.h"

namespace frazil {

enum class EventCategory : std::uint8_t {
  kOther,
  kOperation,   // cpu_op, once Operator
  kAnnotation,  // user_annotation
  kPython,      // python_function
  kCall,        // of a device's library: *_runtime, *_driver
  kDevice,      // kernel, gpu_memcpy, gpu_memset
};

EventCategory category_of_event(std::string_view text);

// Bytes of an element, by the name the profiler gives its type; 0 for what is no tensor.
std::int64_t element_bytes(std::string_view type);

// What a range of this name marks, other than a layer of the user's; none: nothing.
std::optional<RangeKind> kind_of_range(EventCategory category, std::string_view name);

}  // namespace frazil
