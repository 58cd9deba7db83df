#pragma once
// A SampleSource is the samples of one part of a data set, in the order of their numbers, wherever
// they lie: in memory, or in files that are mapped and may be larger than memory. A copy shares the
// samples.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/tensors/samples.h"

namespace frazil {

// Maps values of the first input by channel, dimension 1: x -> (x - mean) / deviation, in float32.
struct Normalization {
  std::vector<double> mean;  // by channel; empty: nothing is changed
  std::vector<double> deviation;
  friend bool operator==(const Normalization&, const Normalization&) = default;
};

class SampleSource {
 public:
  SampleSource() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): samples in memory are a source of themselves.
  SampleSource(Samples samples);
  // The samples of several places, one place after another. Requires: equal forms; for a
  // normalization, a value for each channel.
  explicit SampleSource(std::vector<Samples> places, Normalization normalization = {});

  std::int64_t count() const { return count_; }
  const Normalization& normalization() const { return normalization_; }

  // Returns these samples, row by row, contiguous and in memory.
  Samples gather(std::span<const std::int64_t> numbers) const;
  // Returns samples [first, first + count): views of the same memory where they are one place's and
  // nothing is normalized, else as gather() does.
  Samples narrow(std::int64_t first, std::int64_t count) const;
  // Returns all samples, as narrow() does.
  Samples whole() const { return narrow(0, count_); }
  // Returns the source of some of the samples, which are not copied: number i is `numbers[i]` here.
  SampleSource select(std::vector<std::int64_t> numbers) const;
  // Returns the XXH64 of all samples as they lie, before any normalization: tensor by tensor, each
  // seeded with the hash of the one before. It does not depend on where one place ends.
  std::uint64_t hash(std::uint64_t seed = 0) const;

 private:
  struct Spot {
    std::size_t place = 0;
    std::int64_t row = 0;
  };
  Spot find(std::int64_t number) const;
  Samples normalize(Samples samples) const;

  std::shared_ptr<const std::vector<Samples>> places_;
  std::vector<std::int64_t> ends_;  // by place: how many samples lie in it and before it
  std::shared_ptr<const std::vector<std::int64_t>> chosen_;  // none: all samples
  std::int64_t count_ = 0;
  Normalization normalization_;
};

}  // namespace frazil
