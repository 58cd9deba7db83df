#pragma once
// Quantities and indices that do not mix: time in integer nanoseconds, sizes in integer bytes,
// and one index type per noun, so that a StageId is never taken for a DeviceId.

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace frazil {

using Duration = std::chrono::nanoseconds;

inline constexpr Duration kNoTime{0};
// kNever is after every time. So is kFarAway, which leaves room to be added to a few times.
inline constexpr Duration kNever = Duration::max();
inline constexpr Duration kFarAway = kNever / 8;

inline constexpr std::int64_t kMillion = 1'000'000;
// Returns floor(value x ppm / 10^6): the time on a device that takes `ppm` millionths of the
// profiled device's time. The result is exact wherever it fits into the type.
template <class Integer>
constexpr Integer scale_ppm(Integer value, std::int64_t ppm) {
  return value / kMillion * ppm + value % kMillion * ppm / kMillion;
}
constexpr Duration scale_ppm(Duration time, std::int64_t ppm) {
  return Duration{scale_ppm(time.count(), ppm)};
}

// Returns the quotient rounded up, of a count that is not negative.
template <class Integer>
constexpr Integer divide_up(Integer count, Integer parts) {
  return count / parts + (count % parts > 0 ? 1 : 0);
}

// Returns a time in milliseconds, as tables and pictures show it.
constexpr double to_ms(Duration time) { return static_cast<double>(time.count()) / 1e6; }

// The clock of a time line: its zero is the start of the simulation or of the measured run.
struct TimelineClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<TimelineClock>;
  static constexpr bool is_steady = true;  // NOLINT(readability-identifier-naming): std's name
};
using TimePoint = TimelineClock::time_point;

struct Bytes {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  constexpr Bytes& operator+=(Bytes other) { return count += other.count, *this; }
  constexpr Bytes& operator-=(Bytes other) { return count -= other.count, *this; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t times) { return {a.count * times}; }
};

struct BytesPerSecond {
  std::int64_t count = 0;  // 0 means unlimited: moving bytes takes no time

  friend constexpr auto operator<=>(BytesPerSecond, BytesPerSecond) = default;
};

// Returns the time to move `size` at `rate`, rounded up to whole ns; exact for sizes below 2^63
// bytes.
constexpr Duration operator/(Bytes size, BytesPerSecond rate) {
  if (rate.count == 0) return Duration{0};
  __extension__ using Wide = __int128;
  const Wide scaled = static_cast<Wide>(size.count) * 1'000'000'000;
  return Duration{static_cast<Duration::rep>(divide_up(scaled, Wide{rate.count}))};
}

// An index into one kind of list. It converts explicitly in both directions and is ordered by
// value.
template <class Tag>
struct Id {
  std::int32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr explicit Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using LayerId = Id<struct LayerTag>;
using BlockId = Id<struct BlockTag>;
using HostId = Id<struct HostTag>;
using DeviceId = Id<struct DeviceTag>;
using PipelineId = Id<struct PipelineTag>;
using StageId = Id<struct StageTag>;
using MicroBatchId = Id<struct MicroBatchTag>;  // global: counted over the whole batch

// The largest count of bytes or ns in a profile. Every JSON reader holds it exactly, and the sum of
// a thousand such counts fits 64 bits.
inline constexpr std::int64_t kLargestQuantity = std::int64_t{1} << 53;

using Step = std::int64_t;  // optimizer steps since the start of training

}  // namespace frazil

template <class Tag>
struct std::hash<frazil::Id<Tag>> {
  std::size_t operator()(frazil::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
