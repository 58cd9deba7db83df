#include "exec/data/dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

Dataset read_shipped() {
  return read_digits(fs::path(FRAZIL_SOURCE_FOLDER) / "exec/data/digits.csv.gz");
}

std::string pack(const std::string& text) {
  std::string packed(text.size() + 1024, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Writes a sample whose pixels are all `pixel`.
std::string row(const std::string& pixel, const std::string& label) {
  std::string text;
  for (int i = 0; i < 64; ++i) text += pixel + ",";
  return text + label + "\n";
}

bool same_bits(const SampleSource& one, const SampleSource& other) {
  const Samples a = one.whole();
  const Samples b = other.whole();
  return at::equal(a.inputs.at(0), b.inputs.at(0)) && at::equal(a.labels, b.labels);
}

// Cuts the bytes somewhere, or turns one bit.
std::string damage(std::string bytes, bool cut, std::mt19937_64& engine) {
  const std::size_t place = engine() % bytes.size();
  if (cut) return bytes.substr(0, place);
  bytes[place] = static_cast<char>(bytes[place] ^ (1 << engine() % 8));
  return bytes;
}

class DigitsFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    path_ = fs::temp_directory_path() / ("frazil_" + name + std::to_string(getpid()) + ".gz");
  }
  void TearDown() override { fs::remove(path_); }

  Dataset read(const std::string& bytes) const {
    write_text_file(path_, bytes);
    return read_digits(path_);
  }

  // Returns the line of the error, and what was found there.
  std::pair<int, std::string> error_of(const std::string& bytes) const {
    try {
      read(bytes);
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), path_.string());
      return {error.line(), error.found()};
    }
    return {-1, "no error"};
  }

  bool is_refused_or_equal(const std::string& bytes, const Dataset& whole) const {
    try {
      const Dataset read_back = read(bytes);
      return same_bits(read_back.train, whole.train) && same_bits(read_back.test, whole.test);
    } catch (const InputError& error) {
      return error.line() >= 1;
    }
  }

  fs::path path_;
};

using Found = std::pair<int, std::string>;

TEST(Digits, HoldOneFifthRoundedUpForTheTest) {
  const Dataset digits = read_shipped();
  EXPECT_EQ(digits.train.count(), 1437);
  EXPECT_EQ(digits.test.count(), 360);
  EXPECT_EQ(digits.classes, 10);
  EXPECT_EQ(digits.train.whole().inputs[0].sizes(), (at::IntArrayRef{1437, 1, 8, 8}));
  EXPECT_EQ(digits.test.whole().inputs[0].scalar_type(), at::kFloat);
  EXPECT_EQ(digits.test.whole().labels.scalar_type(), at::kLong);
  EXPECT_TRUE(digits.train.whole().inputs[0].is_contiguous());
}

TEST(Digits, KeepEveryPixelAndLabelOfTheFile) {
  const Dataset digits = read_shipped();
  // The sum of all pixels, and the samples by class, were counted in the file by another program.
  const at::Tensor train = (digits.train.whole().inputs[0] + 1) * 8;
  const at::Tensor test = (digits.test.whole().inputs[0] + 1) * 8;
  EXPECT_EQ(train.to(at::kLong).sum().item<std::int64_t>() +
                test.to(at::kLong).sum().item<std::int64_t>(),
            561718);
  const at::Tensor labels = at::cat({digits.train.whole().labels, digits.test.whole().labels});
  const std::array<std::int64_t, 10> expected{178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
  const at::Tensor counts = at::bincount(labels);
  ASSERT_EQ(counts.size(0), 10);
  for (std::size_t digit = 0; digit < 10; ++digit) {
    EXPECT_EQ(counts[static_cast<std::int64_t>(digit)].item<std::int64_t>(), expected[digit]);
  }
}

TEST(Digits, MapGreysToMinusOneToOne) {
  const Dataset digits = read_shipped();
  EXPECT_EQ(digits.train.whole().inputs[0].min().item<float>(), -1.0F);
  EXPECT_EQ(digits.train.whole().inputs[0].max().item<float>(), 1.0F);
}

TEST(Digits, MixTheWritersInBothParts) {
  const Dataset digits = read_shipped();
  EXPECT_GT(at::bincount(digits.test.whole().labels).min().item<std::int64_t>(), 20);
  EXPECT_TRUE(same_bits(digits.test, read_shipped().test));
}

TEST_F(DigitsFile, MayHaveSeveralMembersAndNoLastNewline) {
  std::string last = row("16", "9");
  last.pop_back();
  const Dataset digits = read(pack(row("0", "1") + row("4", "2").substr(0, 30)) +
                              pack(row("4", "2").substr(30) + last));
  EXPECT_EQ(digits.train.count(), 2);
  ASSERT_EQ(digits.test.count(), 1);
  std::map<std::int64_t, float> pixel_of_label;
  for (const Samples& part : {digits.train.whole(), digits.test.whole()}) {
    for (std::int64_t i = 0; i < part.count(); ++i) {
      pixel_of_label[part.labels[i].item<std::int64_t>()] =
          part.inputs[0][i][0][7][7].item<float>();
    }
  }
  EXPECT_EQ(pixel_of_label, (std::map<std::int64_t, float>{{1, -1.0F}, {2, -0.5F}, {9, 1.0F}}));
}

TEST_F(DigitsFile, WithABadLineIsAnErrorAtThatLine) {
  const std::string good = row("3", "7");
  EXPECT_EQ(error_of(pack(good + row("17", "7"))), Found(2, "`17` in field 1"));
  EXPECT_EQ(error_of(pack(good + good + row("3", "10"))), Found(3, "`10` in field 65"));
  EXPECT_EQ(error_of(pack(row("-1", "7") + good)), Found(1, "`-1` in field 1"));
  EXPECT_EQ(error_of(pack(good + row("1.5", "7"))), Found(2, "`1.5` in field 1"));
  EXPECT_EQ(error_of(pack(good + row("3", ""))), Found(2, "`` in field 65"));
  EXPECT_EQ(error_of(pack(good + row("3", "7\r"))), Found(2, "`7?` in field 65"));
  EXPECT_EQ(error_of(pack(good + row("3", "99999999999999999999999"))),
            Found(2, "`99999999999999999999...` in field 65"));
}

TEST_F(DigitsFile, WithAnotherNumberOfFieldsIsAnErrorAtThatLine) {
  const std::string good = row("3", "7");
  EXPECT_EQ(error_of(pack(good + "3," + good)), Found(2, "66 fields"));
  EXPECT_EQ(error_of(pack(good + "\n" + good)), Found(2, "1 fields"));
  EXPECT_EQ(error_of(pack(good + good.substr(2))), Found(2, "64 fields"));
}

TEST_F(DigitsFile, ThatIsDamagedIsAnErrorWhereItBreaks) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += row(std::to_string(i % 17), std::to_string(i % 10));
  const std::string packed = pack(text);
  EXPECT_EQ(error_of(packed.substr(0, packed.size() - 1)),
            Found(51, "the end of the file inside a gzip"));
  std::string damaged = packed;
  damaged[packed.size() - 5] = static_cast<char>(damaged[packed.size() - 5] ^ 1);
  const Found found = error_of(damaged);
  EXPECT_EQ(found.second.find("damaged gzip data ("), 0U) << found.second;
  EXPECT_EQ(error_of(packed + "more").second, "damaged gzip data (incorrect header check)");
}

TEST_F(DigitsFile, ThatIsNoGzipOrHoldsTooLittleIsAnError) {
  EXPECT_EQ(error_of(""), Found(1, "the end of the file inside a gzip"));
  EXPECT_EQ(error_of(row("3", "7")), Found(1, "damaged gzip data (incorrect header check)"));
  EXPECT_EQ(error_of(pack("")), Found(0, "0 samples"));
  EXPECT_EQ(error_of(pack(row("3", "7"))), Found(1, "1 samples"));
  EXPECT_THROW(read_digits("/nowhere/digits.csv.gz"), InputError);
}

// Any cut and any turned bit either is seen or changes nothing that is read.
TEST_F(DigitsFile, NeverGivesOtherSamplesAfterDamage) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += row(std::to_string(i), std::to_string(i));
  const std::string packed = pack(text);
  const Dataset whole = read(packed);
  constexpr int kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 engine(kSeed);
  for (int round = 0; round < 60; ++round) {
    const std::string bytes = damage(packed, round % 2 == 0, engine);
    EXPECT_TRUE(is_refused_or_equal(bytes, whole)) << "round " << round;
  }
}

TEST(Synthetic, RepeatsItsBits) {
  const Dataset a = make_synthetic(20, 7, 3, 4, 5, 11);
  const Dataset b = make_synthetic(20, 7, 3, 4, 5, 11);
  EXPECT_TRUE(same_bits(a.train, b.train));
  EXPECT_TRUE(same_bits(a.test, b.test));
  EXPECT_FALSE(at::equal(a.train.whole().inputs[0],
                         make_synthetic(20, 7, 3, 4, 5, 12).train.whole().inputs[0]));
  EXPECT_TRUE(same_bits(a.train, make_synthetic(20, 9, 3, 4, 5, 11).train));
}

TEST(Synthetic, HasTheAskedShape) {
  const Dataset data = make_synthetic(6, 4, 3, 8, 10, 0);
  EXPECT_EQ(data.train.whole().inputs[0].sizes(), (at::IntArrayRef{6, 3, 8, 8}));
  EXPECT_EQ(data.test.whole().inputs[0].sizes(), (at::IntArrayRef{4, 3, 8, 8}));
  EXPECT_EQ(data.train.count(), 6);
  EXPECT_EQ(data.test.count(), 4);
  EXPECT_EQ(data.channels, 3);
  EXPECT_EQ(data.classes, 10);
  EXPECT_EQ(Samples{}.count(), 0);
}

// A least-squares fit of the training part finds the map again, far above the 1 in 4 of chance.
TEST(Synthetic, CanBeLearnedByALinearMap) {
  const Dataset data = make_synthetic(2000, 500, 1, 4, 4, 3);
  const at::Tensor inputs = data.train.whole().inputs[0].flatten(1).to(at::kDouble);
  const at::Tensor targets = at::one_hot(data.train.whole().labels, 4).to(at::kDouble);
  const at::Tensor map =
      at::linalg_inv(inputs.t().mm(inputs)).mm(inputs.t()).mm(targets - targets.mean(0));
  const at::Tensor guesses =
      data.test.whole().inputs[0].flatten(1).to(at::kDouble).mm(map).argmax(1);
  const auto right = (guesses == data.test.whole().labels).sum().item<std::int64_t>();
  EXPECT_GT(right, 400);
  EXPECT_GT(at::bincount(data.train.whole().labels, {}, 4).min().item<std::int64_t>(), 100);
}

TEST(Gather, TakesTheRowsOfTheOrder) {
  const Dataset data = make_synthetic(10, 1, 2, 3, 4, 5);
  const std::vector<std::int64_t> order = epoch_order(10, 1, 0);
  const Samples part = gather(data.train, order, 4, 3);
  ASSERT_EQ(part.inputs[0].sizes(), (at::IntArrayRef{3, 2, 3, 3}));
  EXPECT_TRUE(part.inputs[0].is_contiguous());
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::int64_t index = order[static_cast<std::size_t>(4 + i)];
    EXPECT_TRUE(at::equal(part.inputs[0][i], data.train.whole().inputs[0][index]) &&
                at::equal(part.labels[i], data.train.whole().labels[index]));
  }
}

TEST(Gather, MayTakeNothing) {
  const Dataset data = make_synthetic(10, 1, 2, 3, 4, 5);
  const std::vector<std::int64_t> order = epoch_order(10, 1, 0);
  EXPECT_EQ(gather(data.train, order, 10, 0).count(), 0);
}

TEST(Gather, RefusesRowsOutsideTheOrder) {
  const Dataset data = make_synthetic(4, 1, 1, 2, 2, 5);
  const std::vector<std::int64_t> order = epoch_order(4, 1, 0);
  EXPECT_THROW(gather(data.train, order, 3, 2), std::logic_error);
  EXPECT_THROW(gather(data.train, order, -1, 2), std::logic_error);
  EXPECT_THROW(gather(data.train, order, 5, 0), std::logic_error);
}

TEST(EpochOrder, IsAPermutationForEverySeedAndEpoch) {
  const std::vector<std::int64_t> in_order = [] {
    std::vector<std::int64_t> numbers(100);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }();
  std::set<std::vector<std::int64_t>> seen;
  for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32, ~0ULL}) {
    for (int epoch = 0; epoch < 5; ++epoch) {
      const std::vector<std::int64_t> order = epoch_order(100, seed, epoch);
      EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), in_order.begin())) << seed;
      seen.insert(order);
    }
  }
  EXPECT_EQ(seen.size(), 20U);
}

TEST(EpochOrder, Repeats) {
  EXPECT_EQ(epoch_order(100, ~0ULL, 4), epoch_order(100, ~0ULL, 4));
  EXPECT_TRUE(epoch_order(0, 1, 0).empty());
  EXPECT_EQ(epoch_order(1, 1, 0), std::vector<std::int64_t>{0});
}

// The numbers are part of what a seed means: mt19937_64, seed_seq and the draw are all fixed. The
// expected numbers come from another implementation of the three.
TEST(EpochOrder, IsTheSameOnEveryMachine) {
  EXPECT_EQ(epoch_order(8, 1, 0), (std::vector<std::int64_t>{0, 5, 4, 3, 2, 6, 1, 7}));
  EXPECT_EQ(epoch_order(8, 1, 1), (std::vector<std::int64_t>{4, 0, 3, 6, 5, 1, 7, 2}));
}

// The test is chi-square over the 24 orders of 4 samples: with 23 degrees of freedom, 49.7 is
// exceeded by chance once in a thousand; the seeds are fixed, so the outcome is too.
TEST(EpochOrder, FavoursNoOrder) {
  std::map<std::vector<std::int64_t>, int> counts;
  constexpr int kDraws = 12'000;
  for (int epoch = 0; epoch < kDraws; ++epoch) ++counts[epoch_order(4, 42, epoch)];
  ASSERT_EQ(counts.size(), 24U);
  double chi_square = 0;
  for (const auto& [order, count] : counts) {
    const double surplus = count - kDraws / 24.0;
    chi_square += surplus * surplus / (kDraws / 24.0);
  }
  EXPECT_LT(chi_square, 49.7);
}

}  // namespace
}  // namespace frazil
