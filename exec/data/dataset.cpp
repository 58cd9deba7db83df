#define ZLIB_CONST

#include "exec/data/dataset.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <new>
#include <numeric>
#include <random>
#include <span>
#include <string_view>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "profiles/units.h"

namespace frazil {
namespace {

constexpr int kDigitSide = 8;
constexpr int kDigitPixels = kDigitSide * kDigitSide;
constexpr int kDigitClasses = 10;
constexpr int kLargestGrey = 16;
constexpr float kMiddleGrey = 8;
constexpr std::uint64_t kSplitSeed = 1998;
constexpr std::size_t kLargestUnpacked = std::size_t{1} << 28;

// A line of the file: pixels, then the class.
using DigitRow = std::array<std::uint8_t, kDigitPixels + 1>;

// Draws uniformly in [0, bound): draws above the last whole multiple of `bound` are thrown away, so
// no remainder is favoured. The standard's distributions differ from library to library.
std::uint64_t draw_below(std::uint64_t bound, std::mt19937_64& engine) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t excess = (kMost % bound + 1) % bound;
  std::uint64_t drawn = engine();
  while (drawn > kMost - excess) drawn = engine();
  return drawn % bound;
}

std::vector<std::int64_t> shuffled_indices(std::int64_t count, std::mt19937_64& engine) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[draw_below(left, engine)]);
  }
  return order;
}

int line_at_end(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
}

// Unpacks a gzip of one or several members.
class GzipReader {
 public:
  GzipReader(std::string_view packed, const std::string& file) : file_(file) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
    stream_.next_in = reinterpret_cast<const Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
  }
  ~GzipReader() { inflateEnd(&stream_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  std::string unpack() {
    std::array<char, std::size_t{1} << 16> buffer;
    while (true) {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream_.avail_out = static_cast<uInt>(buffer.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      text_.append(buffer.data(), buffer.size() - stream_.avail_out);
      if (text_.size() > kLargestUnpacked) fail("more than 256 MiB unpacked", "a smaller file");
      if (status == Z_STREAM_END && stream_.avail_in == 0) return text_;
      check(status == Z_STREAM_END ? inflateReset(&stream_) : status);
    }
  }

 private:
  void check(int status) const {
    if (status == Z_OK) return;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_BUF_ERROR) fail("the end of the file inside a gzip", "a whole gzip");
    const std::string reason = stream_.msg == nullptr ? "broken stream" : stream_.msg;
    fail("damaged gzip data (" + reason + ")", "a whole gzip");
  }

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, line_at_end(text_), found, expected);
  }

  const std::string& file_;
  std::string text_;
  z_stream stream_{};
};

// Quotes a field for a message; it may hold any bytes.
std::string quote_field(std::string_view field) {
  constexpr std::size_t kLongest = 20;
  std::string shown(field.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](char byte) { return byte < ' ' || byte > '~'; }, '?');
  return "`" + shown + (field.size() > kLongest ? "...`" : "`");
}

DigitRow parse_row(std::string_view line, const std::string& file, int line_number) {
  const auto fields = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
  if (fields != DigitRow{}.size()) {
    throw InputError(file, line_number, std::to_string(fields) + " fields",
                     "64 pixels and a class");
  }
  DigitRow row{};
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string_view field = line.substr(0, line.find(','));
    const int largest = i < kDigitPixels ? kLargestGrey : kDigitClasses - 1;
    int value = -1;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool is_whole = error == std::errc{} && end == field.data() + field.size();
    if (!is_whole || value < 0 || value > largest) {
      throw InputError(file, line_number, quote_field(field) + " in field " + std::to_string(i + 1),
                       "an integer from 0 to " + std::to_string(largest));
    }
    row[i] = static_cast<std::uint8_t>(value);
    line.remove_prefix(std::min(field.size() + 1, line.size()));
  }
  return row;
}

std::vector<DigitRow> parse_rows(std::string_view text, const std::string& file) {
  std::vector<DigitRow> rows;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    rows.push_back(parse_row(line, file, static_cast<int>(rows.size()) + 1));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return rows;
}

Samples make_digits(const std::vector<DigitRow>& rows, std::span<const std::int64_t> order) {
  const auto count = static_cast<std::int64_t>(order.size());
  Samples samples{{at::empty({count, 1, kDigitSide, kDigitSide}, at::kFloat)},
                  at::empty({count}, at::kLong)};
  float* pixel = samples.inputs[0].data_ptr<float>();
  std::int64_t* label = samples.labels.data_ptr<std::int64_t>();
  for (const std::int64_t index : order) {
    const DigitRow& row = rows[static_cast<std::size_t>(index)];
    for (int i = 0; i < kDigitPixels; ++i) {
      *pixel++ = static_cast<float>(row[static_cast<std::size_t>(i)]) / kMiddleGrey - 1;
    }
    *label++ = row.back();
  }
  return samples;
}

// Returns labels[i] = argmax over classes of images[i] x map. It takes plain sums in a fixed order:
// a library's matrix product may round differently with another number of threads, and turn a label
// over.
at::Tensor label_by_map(const at::Tensor& images, const at::Tensor& map) {
  const std::int64_t count = images.size(0);
  const std::int64_t pixels = map.size(0);
  const std::int64_t classes = map.size(1);
  at::Tensor labels = at::empty({count}, at::kLong);
  std::vector<double> scores(static_cast<std::size_t>(classes));
  const float* pixel = images.const_data_ptr<float>();
  for (std::int64_t sample = 0; sample < count; ++sample) {
    std::fill(scores.begin(), scores.end(), 0.0);
    const float* weight = map.const_data_ptr<float>();
    for (std::int64_t i = 0; i < pixels; ++i, ++pixel) {
      for (double& score : scores) score += static_cast<double>(*pixel) * *weight++;
    }
    const auto best = std::max_element(scores.begin(), scores.end());
    labels.data_ptr<std::int64_t>()[sample] = best - scores.begin();
  }
  return labels;
}

}  // namespace

Dataset read_digits(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string packed = read_text_file(path);
  const std::vector<DigitRow> rows = parse_rows(GzipReader(packed, file).unpack(), file);
  if (rows.size() < 2) {
    throw InputError(file, static_cast<int>(rows.size()), std::to_string(rows.size()) + " samples",
                     "at least 2, to train and to test");
  }
  std::mt19937_64 engine(kSplitSeed);
  const std::vector<std::int64_t> order =
      shuffled_indices(static_cast<std::int64_t>(rows.size()), engine);
  const std::size_t test = (rows.size() + 4) / 5;
  const std::span<const std::int64_t> all(order);
  return {.name = "digits",
          .channels = 1,
          .height = kDigitSide,
          .width = kDigitSide,
          .classes = kDigitClasses,
          .train = make_digits(rows, all.subspan(test)),
          .test = make_digits(rows, all.first(test))};
}

Dataset make_synthetic(int train, int test, int channels, int size, int classes,
                       std::uint64_t seed) {
  ENSURE(train >= 0 && test >= 0 && channels > 0 && size > 0 && classes > 0,
         "synthetic data has pixels and classes");
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const std::int64_t pixels = std::int64_t{channels} * size * size;
  const at::Tensor map = at::randn({pixels, classes}, generator, at::kFloat);
  const auto make_part = [&](std::int64_t count) {
    const at::Tensor images = at::randn({count, channels, size, size}, generator, at::kFloat);
    return Samples{{images}, label_by_map(images, map)};
  };
  Dataset dataset{.name = "synthetic",
                  .channels = channels,
                  .height = size,
                  .width = size,
                  .classes = classes,
                  .train = {},
                  .test = {}};
  dataset.train = make_part(train);
  dataset.test = make_part(test);
  return dataset;
}

Dataset split_validation(Dataset data, int percent, std::uint64_t seed) {
  if (percent == 0) return data;
  ENSURE(percent > 0 && percent <= 100 && data.validation.count() == 0, "a share of one part");
  constexpr int kNoEpoch = -1;  // an order that no epoch has
  const std::int64_t samples = data.train.count();
  const std::int64_t taken = divide_up(samples * percent, std::int64_t{100});
  const std::vector<std::int64_t> order = epoch_order(samples, seed, kNoEpoch);
  std::vector<std::int64_t> held(order.begin(), order.begin() + taken);
  std::vector<std::int64_t> left(order.begin() + taken, order.end());
  std::sort(held.begin(), held.end());
  std::sort(left.begin(), left.end());
  data.validation = data.train.select(std::move(held));
  data.train = data.train.select(std::move(left));
  return data;
}

Samples gather(const SampleSource& samples, const std::vector<std::int64_t>& order,
               std::int64_t first, std::int64_t count) {
  const auto length = static_cast<std::int64_t>(order.size());
  ENSURE(first >= 0 && count >= 0 && first <= length && count <= length - first,
         "a micro-batch lies within the order");
  return samples.gather(
      std::span(order).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
}

std::vector<Samples> gather_micro_batches(const SampleSource& samples,
                                          const std::vector<std::int64_t>& order,
                                          std::int64_t first, std::int64_t count, int size) {
  ENSURE(!order.empty() && first >= 0 && size > 0, "samples to gather");
  const auto length = static_cast<std::int64_t>(order.size());
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    rows[static_cast<std::size_t>(i)] = order[static_cast<std::size_t>((first + i) % length)];
  }
  std::vector<Samples> micro_batches;
  for (std::int64_t done = 0; done < count; done += size) {
    micro_batches.push_back(
        gather(samples, rows, done, std::min<std::int64_t>(size, count - done)));
  }
  return micro_batches;
}

std::vector<std::int64_t> epoch_order(std::int64_t samples, std::uint64_t seed, int epoch) {
  ENSURE(samples >= 0, "a count of samples");
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(epoch)};
  std::mt19937_64 engine(words);
  return shuffled_indices(samples, engine);
}

}  // namespace frazil
