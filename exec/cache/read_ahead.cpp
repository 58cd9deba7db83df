#include "exec/cache/read_ahead.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include "exec/devices/start_thread.h"

namespace frazil {

ReadAhead::ReadAhead(Read read, int readers) : read_(std::move(read)) {
  threads_ = start_threads(
      readers, [this](int) { return [this] { run(); }; }, [this] { end(); });
}

ReadAhead::~ReadAhead() {
  end();
  for (std::thread& thread : threads_) thread.join();
}

// Lets the threads end after what they are reading.
void ReadAhead::end() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void ReadAhead::expect(std::vector<SampleIds> micro_batches) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(entries_, [this](const Entry& entry) { return entry.round < round_; });
    ++round_;
    for (SampleIds& samples : micro_batches) {
      entries_.push_back({.samples = std::move(samples), .round = round_, .number = entered_++});
    }
  }
  changed_.notify_all();
}

void ReadAhead::forget() {
  std::unique_lock<std::mutex> lock(mutex_);
  entries_.clear();
  changed_.wait(lock, [this] { return reading_ == 0; });
}

std::optional<std::vector<PrefixRows>> ReadAhead::take(std::span<const std::int64_t> samples) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto find = [&] {
    return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return std::equal(entry.samples.begin(), entry.samples.end(), samples.begin(), samples.end());
    });
  };
  changed_.wait(lock, [&] { return find() == entries_.end() || find()->is_done; });
  const auto found = find();
  if (found == entries_.end()) return std::nullopt;
  Entry entry = std::move(*found);
  entries_.erase(found);
  if (entry.failure) std::rethrow_exception(entry.failure);
  return std::move(entry.rows);
}

ReadAhead::Entry* ReadAhead::find_next() {
  const auto next = std::find_if(entries_.begin(), entries_.end(),
                                 [](const Entry& entry) { return !entry.is_begun; });
  return next == entries_.end() ? nullptr : &*next;
}

ReadAhead::Entry* ReadAhead::find(std::int64_t number) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [number](const Entry& entry) { return entry.number == number; });
  return found == entries_.end() ? nullptr : &*found;
}

void ReadAhead::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || find_next() != nullptr; });
    if (ends_) return;
    Entry* const next = find_next();
    next->is_begun = true;
    const std::int64_t number = next->number;
    const SampleIds samples = next->samples;
    ++reading_;
    lock.unlock();
    std::vector<PrefixRows> rows;
    std::exception_ptr failure;
    try {
      rows = read_(samples);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --reading_;
    if (Entry* const entry = find(number)) {  // otherwise it was dropped meanwhile
      entry->rows = std::move(rows);
      entry->failure = failure;
      entry->is_done = true;
    }
    changed_.notify_all();
  }
}

}  // namespace frazil
