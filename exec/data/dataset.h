#pragma once
// Samples in a training and a test part; some of the training part may be held
// out to validate with.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "exec/tensors/sample_source.h"
#include "exec/tensors/samples.h"

namespace frazil {

struct Dataset {
  std::string name;
  int channels = 1;
  int height = 0;
  int width = 0;
  int classes = 0;
  SampleSource train;
  SampleSource test;
  SampleSource validation = {};  // what a run decides by; may be empty
};

// Reads handwritten digits, 8 x 8, 16 grey levels mapped to -1..1 (UCI Optical Recognition of
// Handwritten Digits, E. Alpaydin and C. Kaynak, 1998, CC BY 4.0): a gzip of lines "64 integers
// 0..16, class". The file is in order of writers, so samples are shuffled by a fixed seed; then one
// fifth (rounded up) is the test part. Throws InputError with the line, for a damaged gzip the line
// at which it breaks.
Dataset read_digits(const std::filesystem::path& path);

// Makes images of normal noise with labels that a fixed random linear map of the image gives, so
// they can be learned. Equal arguments give equal bits, and the training part is the same whatever
// `test` is.
Dataset make_synthetic(int train, int test, int channels, int size, int classes,
                       std::uint64_t seed);

// Holds out `percent` of the training samples, rounded up, to validate with: a random choice by the
// seed. The remaining samples keep their order. Requires: nothing to validate with yet.
Dataset split_validation(Dataset data, int percent, std::uint64_t seed);

// Returns rows `order[first .. first + count)` of a part as one contiguous micro-batch.
Samples gather(const SampleSource& samples, const std::vector<std::int64_t>& order,
               std::int64_t first, std::int64_t count);

// Returns `count` samples from order[first] on, cut into micro-batches of `size`; the last may be
// short. An order shorter than first + count is gone through again from its beginning.
std::vector<Samples> gather_micro_batches(const SampleSource& samples,
                                          const std::vector<std::int64_t>& order,
                                          std::int64_t first, std::int64_t count, int size);

// Returns the order of the training samples in an epoch: a Fisher-Yates shuffle by (seed, epoch)
// alone, the same on every machine.
std::vector<std::int64_t> epoch_order(std::int64_t samples, std::uint64_t seed, int epoch);

}  // namespace frazil
