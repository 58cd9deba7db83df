#pragma once
// Explains the words of PyTorch's profiler, versions 1.8 to 2.x: its event categories, its types
// and its names of ranges.

#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/kineto/kineto_trace.h"

namespace frazil {

enum class EventCategory : std::uint8_t {
  kOther,
  kOperation,   // cpu_op; Operator in old versions
  kAnnotation,  // user_annotation
  kPython,      // python_function
  kCall,        // call of a device's library: *_runtime, *_driver
  kDevice,      // kernel, gpu_memcpy, gpu_memset
};

EventCategory category_of_event(std::string_view text);

// Returns the bytes of an element, by the name that the profiler gives its type; 0 for what is no
// tensor.
std::int64_t element_bytes(std::string_view type);

// Returns which input of an operation with parameters is its data, with the batch first as a rule:
// 1 for addmm and embedding, 0 for linear, convolutions and normalisations. Nothing for other
// operations, and for those whose data may have its batch in another place (recurrent cells).
std::optional<std::size_t> data_input(std::string_view operation);

// Returns what a range of this name marks, layers that the user named aside; returns none if it
// marks nothing.
std::optional<RangeKind> kind_of_range(EventCategory category, std::string_view name);

}  // namespace frazil
