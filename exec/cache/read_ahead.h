#pragma once
// Features of the micro-batches to come, read in the background in the order in which they will be
// asked for. Asked by the threads of all devices.

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

  // `read` is called in a thread of this.
  explicit ReadAhead(Read read);
  ~ReadAhead();  // ends after the micro-batch that is being read
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Reads these too, one after another: those of the next step, while what was expected last is
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
    std::int64_t round = 0;  // of expect()
    bool is_done = false;
    std::vector<PrefixRows> rows = {};
    std::exception_ptr failure = {};
  };
  void run();
  Entry* find_next();

  Read read_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  std::int64_t round_ = 0;
  bool is_reading_ = false;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace frazil
