#include "exec/measuring/allocation_meter.h"

#include <c10/core/Allocator.h>
#include <c10/util/Logging.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <utility>

namespace frazil {
namespace {

constexpr int kErrors = 2;  // the level of c10's log that keeps errors only

}  // namespace

struct AllocationMeter::Reports final : c10::MemoryReportingInfoBase,
                                        std::enable_shared_from_this<Reports> {
  explicit Reports(std::shared_ptr<Book> shared_book)
      : book(std::move(shared_book)),
        around(dynamic_cast<c10::MemoryReportingInfoBase*>(
            c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE))) {}

  void reportMemoryUsage(void* pointer, std::int64_t size, std::size_t total_allocated,
                         std::size_t total_reserved, c10::Device device) override {
    if (book == nullptr) {
      add(size);
    } else {
      note(pointer, size);
    }
    if (around == nullptr) return;
    around->reportMemoryUsage(pointer, size, total_allocated, total_reserved, device);
  }
  bool memoryProfilingEnabled() const override { return true; }

  void note(const void* pointer, std::int64_t size) {
    const std::lock_guard<std::mutex> lock(book->mutex_);
    if (size > 0) {
      book->allocated_by_[pointer] = weak_from_this();
      add(size);
      return;
    }
    const auto found = book->allocated_by_.find(pointer);
    if (found == book->allocated_by_.end()) return;
    if (const auto allocator = found->second.lock()) allocator->add(size);
    book->allocated_by_.erase(found);
  }

  void add(std::int64_t size) {
    live += size;
    peak = std::max(peak, live);
  }

  std::unique_lock<std::mutex> lock() const {
    return book == nullptr ? std::unique_lock<std::mutex>()
                           : std::unique_lock<std::mutex>(book->mutex_);
  }

  std::shared_ptr<Book> book;
  c10::MemoryReportingInfoBase* around;  // outlives this, for meters end innermost first
  std::int64_t live = 0;
  std::int64_t peak = 0;
};

struct AllocationMeter::Guard {
  explicit Guard(std::shared_ptr<c10::DebugInfoBase> reports)
      : info(c10::DebugInfoKind::PROFILER_STATE, std::move(reports)) {}
  c10::DebugInfoGuard info;
};

AllocationMeter::Book::Book() : log_level_(std::exchange(FLAGS_caffe2_log_level, kErrors)) {}

AllocationMeter::Book::~Book() { FLAGS_caffe2_log_level = log_level_; }

AllocationMeter::AllocationMeter(std::shared_ptr<Book> book)
    : reports_(std::make_shared<Reports>(std::move(book))),
      guard_(std::make_unique<Guard>(reports_)) {}

AllocationMeter::~AllocationMeter() = default;

std::int64_t AllocationMeter::live_bytes() const {
  const auto lock = reports_->lock();
  return reports_->live;
}

std::int64_t AllocationMeter::peak_bytes() const {
  const auto lock = reports_->lock();
  return reports_->peak;
}

}  // namespace frazil
