#define XXH_INLINE_ALL
#include "exec/tensors/sample_source.h"

#include <ATen/ATen.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

Tensors tensors_of(const Samples& samples) {
  Tensors all = samples.inputs;
  all.push_back(samples.labels);
  return all;
}

Samples samples_of(Tensors all) {
  Samples samples;
  samples.labels = std::move(all.back());
  all.pop_back();
  samples.inputs = std::move(all);
  return samples;
}

std::vector<std::int64_t> shape_for(const at::Tensor& like, std::int64_t count) {
  std::vector<std::int64_t> shape = like.sizes().vec();
  shape.front() = count;
  return shape;
}

// Returns [1, channels, 1, ...], which goes with every sample.
at::Tensor by_channel(const std::vector<double>& values, std::int64_t dimensions) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dimensions), 1);
  shape.at(1) = static_cast<std::int64_t>(values.size());
  return at::tensor(values, at::kDouble).to(at::kFloat).view(shape);
}

}  // namespace

SampleSource::SampleSource(Samples samples)
    : SampleSource(std::vector<Samples>{std::move(samples)}) {}

SampleSource::SampleSource(std::vector<Samples> places, Normalization normalization)
    : normalization_(std::move(normalization)) {
  for (const Samples& samples : places) {
    for (const at::Tensor& tensor : tensors_of(samples)) {
      ENSURE(!tensor.defined() || tensor.is_contiguous(), "rows of samples lie together");
    }
    count_ += samples.count();
    ends_.push_back(count_);
  }
  places_ = std::make_shared<const std::vector<Samples>>(std::move(places));
}

SampleSource::Spot SampleSource::find(std::int64_t number) const {
  ENSURE(number >= 0 && number < count_, "the number of a sample");
  if (chosen_) number = (*chosen_)[static_cast<std::size_t>(number)];
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), number);
  const auto place = static_cast<std::size_t>(end - ends_.begin());
  return {place, place == 0 ? number : number - ends_[place - 1]};
}

// Copies row by row: a place may be a mapped file, of which nothing else is to be read.
Samples SampleSource::gather(std::span<const std::int64_t> numbers) const {
  ENSURE(places_ != nullptr && !places_->empty(), "a source of samples");
  std::vector<Spot> spots;
  spots.reserve(numbers.size());
  for (const std::int64_t number : numbers) spots.push_back(find(number));
  std::vector<Tensors> from;
  from.reserve(places_->size());
  for (const Samples& samples : *places_) from.push_back(tensors_of(samples));
  Tensors gathered;
  for (std::size_t t = 0; t < from.front().size(); ++t) {
    const at::Tensor& like = from.front()[t];
    at::Tensor rows =
        at::empty(shape_for(like, static_cast<std::int64_t>(spots.size())), like.options());
    if (rows.numel() > 0) {
      const std::size_t bytes = rows.nbytes() / spots.size();
      auto* to = static_cast<char*>(rows.data_ptr());
      for (const Spot& spot : spots) {
        const auto* source = static_cast<const char*>(from[spot.place][t].const_data_ptr());
        std::memcpy(to, source + static_cast<std::size_t>(spot.row) * bytes, bytes);
        to += bytes;
      }
    }
    gathered.push_back(std::move(rows));
  }
  return normalize(samples_of(std::move(gathered)));
}

Samples SampleSource::narrow(std::int64_t first, std::int64_t count) const {
  if (count == 0 && places_ == nullptr) return {};
  const bool is_view = !chosen_ && normalization_.mean.empty();
  if (is_view && count > 0) {
    const Spot begin = find(first);
    if (first + count <= ends_[begin.place]) {
      return frazil::narrow((*places_)[begin.place], begin.row, count);
    }
  }
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return gather(numbers);
}

SampleSource SampleSource::select(std::vector<std::int64_t> numbers) const {
  SampleSource some = *this;
  for (std::int64_t& number : numbers) {
    ENSURE(number >= 0 && number < count_, "the number of a sample");
    if (chosen_) number = (*chosen_)[static_cast<std::size_t>(number)];
  }
  some.count_ = static_cast<std::int64_t>(numbers.size());
  some.chosen_ = std::make_shared<const std::vector<std::int64_t>>(std::move(numbers));
  return some;
}

std::uint64_t SampleSource::hash(std::uint64_t seed) const {
  if (count_ == 0) return seed;
  std::vector<Tensors> from;
  from.reserve(places_->size());
  for (const Samples& samples : *places_) from.push_back(tensors_of(samples));
  for (std::size_t t = 0; t < from.front().size(); ++t) {
    XXH64_state_t state;
    XXH64_reset(&state, seed);
    if (!chosen_) {
      for (const Tensors& place : from) {
        XXH64_update(&state, place[t].const_data_ptr(), place[t].nbytes());
      }
    } else {
      for (std::int64_t i = 0; i < count_; ++i) {
        const Spot spot = find(i);
        const at::Tensor row = from[spot.place][t][spot.row];
        XXH64_update(&state, row.const_data_ptr(), row.nbytes());
      }
    }
    seed = XXH64_digest(&state);
  }
  return seed;
}

Samples SampleSource::normalize(Samples samples) const {
  if (normalization_.mean.empty()) return samples;
  at::Tensor& images = samples.inputs.at(0);
  images = images.sub(by_channel(normalization_.mean, images.dim()))
               .div_(by_channel(normalization_.deviation, images.dim()));
  return samples;
}

}  // namespace frazil
