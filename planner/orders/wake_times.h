#pragma once
// Keeps the time at which each device wakes and finds the next device: a tournament over the times
// of n devices, O(log n) per change and per question.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace frazil {

class WakeTimes {
 public:
  // Starts all devices at `time`. Requires of set(): no time after `time`.
  WakeTimes(std::size_t devices, std::int64_t time)
      : width_(std::bit_ceil(devices)), least_(2 * width_, time) {}

  std::int64_t of(std::size_t device) const { return least_[width_ + device]; }

  void set(std::size_t device, std::int64_t time) {
    std::size_t at = width_ + device;
    least_[at] = time;
    for (at /= 2; at > 0; at /= 2) {
      const std::int64_t least = std::min(least_[2 * at], least_[2 * at + 1]);
      if (least_[at] == least) return;
      least_[at] = least;
    }
  }

  std::int64_t earliest() const { return least_[1]; }
  // Returns the last of the devices that wake first. Requires: some device wakes before the time
  // that all devices began with.
  std::size_t next() const {
    std::size_t at = 1;
    while (at < width_) at = 2 * at + (least_[2 * at + 1] == least_[at] ? 1 : 0);
    return at - width_;
  }

 private:
  std::size_t width_;
  std::vector<std::int64_t> least_;  // of the leaves below; leaves by device
};

}  // namespace frazil
