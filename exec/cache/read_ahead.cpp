#include "exec/cache/read_ahead.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

namespace frazil {

ReadAhead::ReadAhead(Read read) : read_(std::move(read)), thread_([this] { run(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReadAhead::expect(std::vector<SampleIds> micro_batches) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(entries_, [this](const Entry& entry) { return entry.round < round_; });
    ++round_;
    for (SampleIds& samples : micro_batches) {
      entries_.push_back({.samples = std::move(samples), .round = round_});
    }
  }
  changed_.notify_all();
}

void ReadAhead::forget() {
  std::unique_lock<std::mutex> lock(mutex_);
  entries_.clear();
  changed_.wait(lock, [this] { return !is_reading_; });
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
                                 [](const Entry& entry) { return !entry.is_done; });
  return next == entries_.end() ? nullptr : &*next;
}

void ReadAhead::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || find_next() != nullptr; });
    if (ends_) return;
    const SampleIds samples = find_next()->samples;
    is_reading_ = true;
    lock.unlock();
    std::vector<PrefixRows> rows;
    std::exception_ptr failure;
    try {
      rows = read_(samples);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    is_reading_ = false;
    // Dropped meanwhile, or still the next: others are taken when they are done alone.
    if (Entry* const entry = find_next(); entry != nullptr && entry->samples == samples) {
      entry->rows = std::move(rows);
      entry->failure = failure;
      entry->is_done = true;
    }
    changed_.notify_all();
  }
}

}  // namespace frazil
