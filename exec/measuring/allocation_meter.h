#pragma once
// Bytes that the calling thread has allocated through libtorch's allocators and not yet freed,
// since the meter began, by the allocators' own reports: of a GPU's each tensor rounded up to 512
// bytes. A meter inside another on one thread tells both. Frees of what was there before any meter
// are not reported.

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace frazil {

class AllocationMeter {
  struct Reports;

 public:
  // Shared by meters on several threads: what one of them frees comes off the meter of the thread
  // that has allocated it, and what none of them has allocated does not count. Without a book every
  // free comes off the freeing thread's, which may go negative. While there is a book, the process
  // logs errors of libtorch alone: the allocator warns of each thousandth free that it cannot tell.
  class Book {
   public:
    Book();
    ~Book();
    Book(const Book&) = delete;
    Book& operator=(const Book&) = delete;

   private:
    friend class AllocationMeter;
    int log_level_;
    std::mutex mutex_;  // of the counts too
    std::unordered_map<const void*, std::weak_ptr<Reports>> allocated_by_;
  };

  explicit AllocationMeter(std::shared_ptr<Book> book = nullptr);
  ~AllocationMeter();  // on the same thread
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;

  std::int64_t live_bytes() const;
  std::int64_t peak_bytes() const;  // the most that live_bytes() has been

 private:
  std::shared_ptr<Reports> reports_;
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

}  // namespace frazil
