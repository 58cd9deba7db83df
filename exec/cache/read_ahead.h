#pragma once
// Reads the features of the micro-batches to come in the background, in one thread or several,
// begun in the order in which they will be asked for. The threads of all devices ask for them.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "exec/cache/prefix_rows.h"

namespace frazil {

class ReadAhead {
 public:
  using SampleIds = std::vector<std::int64_t>;
  using Read = std::function<std::vector<PrefixRows>(const SampleIds&)>;

  // A disk is fastest when several records are asked for at once; more readers than these gain
  // nothing.
  static constexpr int kReadersOfDisk = 4;

  // Calls `read` in `readers` threads of its own, each with a different micro-batch.
  explicit ReadAhead(Read read, int readers = 1);
  ~ReadAhead();  // ends after the micro-batches that are being read
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Reads these micro-batches too, in their order: those of the next step, while those expected
  // last are being taken. What was expected before those and not taken is dropped.
  void expect(std::vector<SampleIds> micro_batches);
  // Drops all that is expected; nothing is being read when it returns.
  void forget();
  // Waits for what is read of these samples and returns it; none if they are not expected. Throws
  // what the reading has thrown.
  std::optional<std::vector<PrefixRows>> take(std::span<const std::int64_t> samples);

 private:
  struct Entry {
    SampleIds samples;
    std::int64_t round = 0;   // which call of expect()
    std::int64_t number = 0;  // counted over all entries ever
    bool is_begun = false;
    bool is_done = false;
    std::vector<PrefixRows> rows = {};
    std::exception_ptr failure = {};
  };
  void run();
  void end();
  Entry* find_next();  // the first that is not begun
  Entry* find(std::int64_t number);

  Read read_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  std::int64_t round_ = 0;
  std::int64_t entered_ = 0;
  int reading_ = 0;  // threads that are reading
  bool ends_ = false;
  std::vector<std::thread> threads_;  // last: they use the members above
};

}  // namespace frazil
