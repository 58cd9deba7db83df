#pragma once
// Keeps the outputs of the frozen layers [0, depth) of a model for each sample (its features), so
// that they are computed once per depth. Safe to call from several threads.
//
// The index knows by which layers a feature was made: a feature of other weights, another depth or
// another precision is never found. While the depth grows, a sample's feature of the depth before
// stays, to go on from, until the new one is there; then it leaves. Nothing is left when the run
// ends (exec/cache/record_store.h).

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
// The names of the precisions, by enumerator.
inline constexpr std::array<std::string_view, 2> kPrecisions{"float32", "bfloat16"};

// Names the layers by which features were made. `layers[l]` is a hash over all that the output of
// layer l follows from except the sample: its parameters and state, and the precision that it
// computes in. The depth is the number of layers.
struct FeatureKey {
  std::vector<std::uint64_t> layers;
  FeaturePrecision precision = FeaturePrecision::kFloat32;

  int depth() const { return static_cast<int>(layers.size()); }
  // True if these features can be computed from those of `other`.
  bool extends(const FeatureKey& other) const;
  friend bool operator==(const FeatureKey&, const FeatureKey&) = default;
};

// Limits how many features of a depth are kept in each tier, those of the depth before not counted.
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
  std::int64_t found_before = 0;  // in `find`, samples only at the depth before
  std::int64_t missed = 0;        // in `find`, samples at neither depth
  std::int64_t promoted = 0;      // from disk to memory
  std::int64_t lost = 0;          // not given back by the disk
  std::int64_t turned_away = 0;   // not stored for want of room
  friend bool operator==(const FeatureCounts&, const FeatureCounts&) = default;
};

class FeatureCache {
 public:
  // Makes a cache for `samples` samples in each of `variants` augmented variants (1: augmentation
  // is frozen or there is none). A feature takes at most `largest` bytes at every depth. Throws and
  // warns as RecordStore::make.
  FeatureCache(const FileSystem& files, const StoreLimits& limits, std::int64_t samples,
               int variants, Bytes largest);

  // Stores and finds features of this key from here on; those of the key before are found as long
  // as the new key extends it. Does nothing for the key that is in force. At depth 0 nothing is
  // stored or found. If `room` is none, nothing is stored, and what was found of the depth before
  // stays.
  void use(const FeatureKey& key, Bytes feature, const FeatureRoom& room = {});

  // The features of all the given samples at one depth, the deepest at which all are there.
  struct Found {
    int depth = 0;  // 0: none
    std::vector<std::int64_t> samples;
    int variant = 0;
    std::vector<RecordStore::Handle> records;
    std::size_t bytes = 0;  // of each
  };
  Found find(std::span<const std::int64_t> samples, int variant);
  // Copies the feature of found.samples[i], as large as features of its depth are. Returns false if
  // it is lost; it is then no longer in the cache.
  bool read(const Found& found, std::size_t i, void* bytes);
  // Stores a feature of the key in force; one that is there already stays. What was found of the
  // sample at the depth before should be let go of by then, or its room cannot serve.
  void store(std::int64_t sample, int variant, std::string_view bytes);
  bool holds(std::int64_t sample, int variant) const;

  bool is_whole() const;  // true if every sample is there in every variant
  // Returns how many samples are there at the depth in force.
  std::int64_t count(FeatureTier tier) const;
  // The features that a deeper depth would be computed from: those of the depth in force if there
  // are any, otherwise those of the depth before. Depth 0: there are neither.
  struct Source {
    int depth = 0;
    Bytes feature;
    std::int64_t in_memory = 0;  // samples
    std::int64_t on_disk = 0;
  };
  Source find_source() const;
  int depth_before() const;  // 0: nothing of a depth before is there
  FeatureCounts counts() const;
  const std::shared_ptr<RecordStore>& records() const { return store_; }

 private:
  struct Depth {
    FeatureKey key;
    Bytes feature;
    FeatureRoom room;
    std::vector<RecordStore::Handle> records = {};  // by variant, sample
    std::int64_t in_memory = 0;  // records in memory, including those being stored
    std::int64_t on_disk = 0;

    std::int64_t held() const { return in_memory + on_disk; }
    std::int64_t& held_in(FeatureTier tier) {
      return tier == FeatureTier::kMemory ? in_memory : on_disk;
    }
    // True if there is room for one more, besides `others` that will come.
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
  mutable std::mutex mutex_;  // guards all below
  Depth now_;
  std::optional<Depth> before_;
  std::int64_t uses_ = 0;  // counts the keys that were in force
  FeatureCounts counts_;
};

}  // namespace frazil
