#pragma once
// Multiplicative noise on prices: each task's price times a factor drawn evenly from the range
// 1 - a to 1 + a. The generator is counter-based, so that the factor of a task depends on (seed,
// draw, task) alone and is the same on every machine. Its hash is splitmix64 (Steele, Lea, Flood
// 2014, OOPSLA). All numbers are integers: the factor is a multiple of 2^-32 and the product is
// rounded down.

#include <cstdint>

#include "profiles/error.h"
#include "sim/task_graph.h"

namespace frazil {

struct Noise {
  std::uint64_t seed = 0;
  std::uint32_t draw = 0;
  std::int64_t amplitude_ppm = 0;  // a in millionths, 0 to 1'000'000
};

class NoisyPrices {
 public:
  explicit NoisyPrices(const Noise& noise)
      : key_(mix(mix(noise.seed) + noise.draw)),
        amplitude_(static_cast<std::uint64_t>(noise.amplitude_ppm) * kOne / kMillion) {
    ENSURE(noise.amplitude_ppm >= 0 && noise.amplitude_ppm <= kMillion, "noise of 0 to 100 %");
  }

  std::int64_t operator()(std::int64_t price, TaskId task) const {
    if (amplitude_ == 0) return price;
    __extension__ using Wide = __int128;
    __extension__ using WideUnsigned = unsigned __int128;
    const WideUnsigned drawn = WideUnsigned{mix(key_ + task)} * (2 * amplitude_ + 1);
    const std::uint64_t factor = kOne - amplitude_ + static_cast<std::uint64_t>(drawn >> 64);
    return static_cast<std::int64_t>(Wide{price} * factor >> 32);
  }

 private:
  static constexpr std::uint64_t kOne = std::uint64_t{1} << 32;

  static std::uint64_t mix(std::uint64_t state) {
    state += 0x9e3779b97f4a7c15;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    return state ^ (state >> 31);
  }

  std::uint64_t key_;
  std::uint64_t amplitude_;  // a in units of 2^-32
};

}  // namespace frazil
