#include "analysis/ablation/pair_order.h"

#include <algorithm>
#include <array>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::uint64_t kOrderKey = 0x6f726465;  // no other draw of a seed has it

bool is_ready(Arm arm, const std::vector<Arm>& done) {
  const std::span<const Arm> needs = needs_of(arm);
  return std::all_of(needs.begin(), needs.end(), [&](Arm need) {
    return std::find(done.begin(), done.end(), need) != done.end();
  });
}

// SplitMix64 (Steele, Lea & Flood 2014): whole and the same everywhere.
std::uint64_t next_number(std::uint64_t& state) {
  std::uint64_t mixed = (state += 0x9e3779b97f4a7c15U);
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace

std::span<const Arm> needs_of(Arm arm) {
  static constexpr std::array<Arm, 2> kTimes = {Arm::kAll, Arm::kUnfrozen};
  static constexpr std::array<Arm, 1> kMasks = {Arm::kAll};
  switch (arm) {
    case Arm::kShorter:
      return kTimes;
    case Arm::kFromTop:
    case Arm::kRandomMasks:
      return kMasks;
    case Arm::kOneDevice:
    case Arm::kDataParallel:
    case Arm::kUnfrozen:
    case Arm::kFreezeOnly:
    case Arm::kAutoPipe:
    case Arm::kAutoPipeCache:
    case Arm::kAutoPipeReplicas:
    case Arm::kAll:
    case Arm::kPipeTransformer:
      return {};
  }
  ENSURE(false, "unknown arm");
}

std::vector<ArmSeed> order_pairs(const std::vector<Arm>& arms,
                                 const std::vector<std::int64_t>& seeds) {
  std::vector<ArmSeed> pairs;
  for (const std::int64_t seed : seeds) {
    std::vector<Arm> left = arms;
    shuffle_by(left, seed, kOrderKey);
    std::vector<Arm> done;
    while (!left.empty()) {
      const auto next =
          std::find_if(left.begin(), left.end(), [&](Arm arm) { return is_ready(arm, done); });
      ENSURE(next != left.end(), "arms come with those that they need");
      done.push_back(*next);
      pairs.push_back({*next, seed});
      left.erase(next);
    }
  }
  return pairs;
}

std::uint64_t start_stream(std::int64_t seed, std::uint64_t key) {
  std::uint64_t state = static_cast<std::uint64_t>(seed);
  return next_number(state) ^ key;
}

std::size_t draw_below(std::size_t count, std::uint64_t& state) {
  return static_cast<std::size_t>(next_number(state) % count);
}

}  // namespace frazil
