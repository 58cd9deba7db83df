#include "exec/allocation_meter.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace frazil {

struct AllocationMeter::Reports final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void* /*pointer*/, std::int64_t size, std::size_t /*total_allocated*/,
                         std::size_t /*total_reserved*/, c10::Device /*device*/) override {
    live += size;
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t live = 0;
};

struct AllocationMeter::Guard {
  explicit Guard(std::shared_ptr<c10::DebugInfoBase> reports)
      : info(c10::DebugInfoKind::PROFILER_STATE, std::move(reports)) {}
  c10::DebugInfoGuard info;
};

AllocationMeter::AllocationMeter()
    : reports_(std::make_shared<Reports>()), guard_(std::make_unique<Guard>(reports_)) {}

AllocationMeter::~AllocationMeter() = default;

std::int64_t AllocationMeter::live_bytes() const { return reports_->live; }

}  // namespace frazil
