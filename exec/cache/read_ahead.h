#pragma once
// Features of the micro-batches to come, read in the background by one thread or several, begun in
// the order in which they will be asked for. Asked by the threads of all devices.

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

  // A disk gives most when it is asked for several records at once; more than these gain nothing.
  static constexpr int kReadersOfDisk = 4;

  // `read` is called in `readers` threads of this, each with a micro-batch of its own.
  explicit ReadAhead(Read read, int readers = 1);
  ~ReadAhead();  // ends after the micro-batches that are being read
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Reads these too, in their order: those of the next step, while what was expected last is
  // being taken. What was expected before that and not taken is dropped.
  void expect(std::vector<SampleIds> micro_batches);
  // Drops all; nothing is being read when it returns.
  void forget();
  // What was read of these samples, once it is; none where they are not expected. Throws what the
  // reading has thrown.
  std::optional<std::vector<PrefixRows>> take(std::span<const std::int64_t> samples);

 private:
  struct Entry {
    SampleIds samples;
    std::int64_t round = 0;   // of expect()
    std::int64_t number = 0;  // of all entries ever
    bool is_begun = false;
    bool is_done = false;
    std::vector<PrefixRows> rows = {};
    std::exception_ptr failure = {};
  };
  void run();
  Entry* find_next();  // not begun
  Entry* find(std::int64_t number);

  Read read_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  std::int64_t round_ = 0;
  std::int64_t entered_ = 0;
  int reading_ = 0;  // threads that are
  bool ends_ = false;
  std::vector<std::thread> threads_;  // last: they use the others
};

}  // namespace frazil
