#pragma once
// What the frozen layers [0, depth) of a model put out for each sample, so that they are computed
// once per depth. The index knows by which layers a feature was made: a feature of other weights,
// another depth or another precision is never found. While the depth grows, a sample's feature of
// the depth before stays, to go on from, until the new one is there; then it leaves. A run that
// ends, however, leaves nothing (exec/cache/record_store.h). Of several threads.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cache/record_store.h"

namespace frazil {

enum class FeaturePrecision { kFloat32, kBfloat16 };
// Names by enumerator.
inline constexpr std::array<std::string_view, 2> kPrecisions{"float32", "bfloat16"};

// By which layers features were made. `layers[l]`: a hash over all that layer l's output follows
// from but the sample: its parameters and state. Its depth is how many they are.
struct FeatureKey {
  std::vector<std::uint64_t> layers;
  FeaturePrecision precision = FeaturePrecision::kFloat32;

  int depth() const { return static_cast<int>(layers.size()); }
  // Whether these features can be computed from those of `other`.
  bool extends(const FeatureKey& other) const;
  friend bool operator==(const FeatureKey&, const FeatureKey&) = default;
};

// How many features of a depth may be kept where; what was kept of the depth before does not count.
struct FeatureRoom {
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  std::int64_t in_memory = kAny;
  std::int64_t on_disk = kAny;
  bool is_none() const { return in_memory == 0 && on_disk == 0; }
  friend bool operator==(const FeatureRoom&, const FeatureRoom&) = default;
};

struct FeatureCounts {
  std::int64_t stored = 0;
  std::int64_t found = 0;         // in `find`, samples at the key's depth
  std::int64_t found_before = 0;  // of them, only at the depth before
  std::int64_t missed = 0;        // of neither
  std::int64_t promoted = 0;      // from disk to memory
  std::int64_t lost = 0;          // not given back by the disk
  std::int64_t turned_away = 0;   // for want of room
  friend bool operator==(const FeatureCounts&, const FeatureCounts&) = default;
};

class FeatureCache {
 public:
  // Of `samples` samples in each of `variants` augmented variants (1: augmentation is frozen or
  // there is none); a feature takes at most `largest` bytes at every depth. As RecordStore::make.
  FeatureCache(const FileSystem& files, const StoreLimits& limits, std::int64_t samples,
               int variants, Bytes largest);

  // Features of this key are stored and found from now on; those of the key before are found as
  // long as the new key extends it. Nothing changes for the key that is in force. Depth 0: nothing
  // is stored or found. `room`: where there is none, nothing is stored, and what was found of the
  // depth before stays.
  void use(const FeatureKey& key, Bytes feature, const FeatureRoom& room = {});

  // Features of all the given samples at one depth, the deepest at which all are there.
  struct Found {
    int depth = 0;  // 0: none
    std::vector<std::int64_t> samples;
    int variant = 0;
    std::vector<RecordStore::Handle> records;
  };
  Found find(std::span<const std::int64_t> samples, int variant);
  // The feature of found.samples[i], of its depth's size. False: it is lost, and no longer there.
  bool read(const Found& found, std::size_t i, void* bytes);
  // Of the key in force. One that is there already stays. What was found of the sample at the depth
  // before should be let go of by then, or its room cannot serve.
  void store(std::int64_t sample, int variant, std::string_view bytes);
  bool holds(std::int64_t sample, int variant) const;

  bool is_whole() const;  // every sample in every variant is there
  // Samples that are there at the depth in force.
  std::int64_t count(FeatureTier tier) const;
  // What a deeper depth would be computed from: of the depth in force where something of it is
  // there, else of the one before; depth 0: nothing is.
  struct Source {
    int depth = 0;
    Bytes feature;
    std::int64_t in_memory = 0;  // samples
    std::int64_t on_disk = 0;
  };
  Source find_source() const;
  int depth_before() const;  // 0: nothing of it is there
  FeatureCounts counts() const;
  const std::shared_ptr<RecordStore>& records() const { return store_; }

 private:
  struct Depth {
    FeatureKey key;
    Bytes feature;
    FeatureRoom room;
    std::vector<RecordStore::Handle> records = {};  // by variant, sample
    std::int64_t in_memory = 0;                     // of them, and of those being stored
    std::int64_t on_disk = 0;

    std::int64_t held() const { return in_memory + on_disk; }
    std::int64_t& held_in(FeatureTier tier) {
      return tier == FeatureTier::kMemory ? in_memory : on_disk;
    }
    // For one more, besides `others` that will come.
    bool has_room(std::int64_t others) const {
      if (room.in_memory == FeatureRoom::kAny || room.on_disk == FeatureRoom::kAny) return true;
      return held() + others < room.in_memory + room.on_disk;
    }
  };
  std::size_t place_of(std::int64_t sample, int variant) const;
  bool covers(const Depth& depth, std::span<const std::int64_t> samples, int variant) const;
  Depth* depth_of(int depth);
  static void forget(Depth& depth, std::size_t place);
  RecordStore::Handle promote(const RecordStore::Record& record, int depth, const void* bytes);

  std::int64_t samples_;
  int variants_;
  std::shared_ptr<RecordStore> store_;
  mutable std::mutex mutex_;  // of all below
  Depth now_;
  std::optional<Depth> before_;
  std::int64_t uses_ = 0;  // of keys
  FeatureCounts counts_;
};

}  // namespace frazil
