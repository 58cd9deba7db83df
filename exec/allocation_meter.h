#pragma once
// Bytes that the calling thread has allocated through libtorch's CPU allocator and not yet freed,
// since the meter began, by the allocator's own reports. Meters do not nest.

#include <cstdint>
#include <memory>

namespace frazil {

class AllocationMeter {
 public:
  AllocationMeter();
  ~AllocationMeter();
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;

  // Frees of what was there before count negative.
  std::int64_t live_bytes() const;

 private:
  struct Reports;
  std::shared_ptr<Reports> reports_;
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

}  // namespace frazil
