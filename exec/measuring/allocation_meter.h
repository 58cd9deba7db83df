#pragma once
// AllocationMeter counts the bytes that the calling thread has allocated through libtorch's
// allocators and not yet freed since the meter was made. It listens to the allocators' own reports;
// the allocator of a GPU rounds each tensor up to 512 bytes. If meters are nested on one thread,
// each of them counts. The allocators do not report frees of memory that was allocated before there
// was any meter.

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace frazil {

class AllocationMeter {
  struct Reports;

 public:
  // A book is shared by the meters of several threads. Bytes that one of these threads frees come
  // off the meter of the thread that allocated them; frees of what none of them allocated do not
  // count. Without a book every free comes off the meter of the freeing thread, which may go
  // negative. While a book exists, the process logs only errors of libtorch, because the allocator
  // warns of every thousandth free that it cannot attribute.
  class Book {
   public:
    Book();
    ~Book();
    Book(const Book&) = delete;
    Book& operator=(const Book&) = delete;

   private:
    friend class AllocationMeter;
    int log_level_;
    std::mutex mutex_;  // guards the counts of the meters too
    std::unordered_map<const void*, std::weak_ptr<Reports>> allocated_by_;
  };

  explicit AllocationMeter(std::shared_ptr<Book> book = nullptr);
  ~AllocationMeter();  // must run on the thread that made the meter
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
