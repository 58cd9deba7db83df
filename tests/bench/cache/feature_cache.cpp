// clang-format off
// Measures how fast cached features are read, in the random order of an epoch, beside what the
// machine gives: from memory against memcpy of as many bytes in the same pieces and order, from
// disk against reading the same file once from its beginning to its end. Cache and machine take
// turns in each round; before each pass over the disk the file's pages are dropped from memory.
//   share    cache / machine, by round; the median and its 95 % bootstrap interval
//   verdict  of each tier: met where the whole interval is at least the bar, missed where it is
//            below, else undecided
// clang-format on

#include <ATen/ATen.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <stdexcept>

#include "analysis/ratio_interval.h"
#include "exec/cache/feature_cache.h"
#include "exec/cache/read_ahead.h"
#include "exec/devices/foreign_load.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"
#include "tests/bench/support/watched_files.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr double kGigabyte = 1e9;
constexpr std::size_t kStep = 4;  // micro-batches
constexpr double kBar = 0.8;      // share of what the machine gives

struct Options {
  std::int64_t records = 1000;
  std::int64_t bytes = 197 * 768 * 4;  // a sample between two blocks of ViT-B/16
  std::int64_t micro_batch = 8;
  int rounds = 12;
  std::string folder;
  std::uint64_t seed = 1;
  bool json = false;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"records", "in the cache, default 1000"},
       {"bytes", "of a record, default 605184: a sample between blocks of ViT-B/16"},
       {"micro-batch", "records found at once, default 8"},
       {"rounds", "of each, default 12"},
       {"folder", "for the records on disk, default the system's for temporary files"},
       {"seed", "of orders and intervals, default 1"}},
      {{"json", "one JSON line for each tier"}});
}

Options read_options(const Flags& flags) {
  Options options;
  options.records = integer_or(flags, "records", 1000, 1, 1'000'000);
  options.bytes = integer_or(flags, "bytes", 605'184, 1, 1 << 30);
  options.micro_batch = integer_or(flags, "micro-batch", 8, 1, 4096);
  options.rounds = integer_or(flags, "rounds", options.rounds, 2, 10'000);
  options.folder =
      optional_text(flags, "folder").value_or(std::filesystem::temp_directory_path().string());
  options.seed = read_seed(flags);
  options.json = is_set(flags, "json");
  return options;
}

using Order = std::vector<std::int64_t>;

Order draw_order(const Options& options, int round) {
  Order order(static_cast<std::size_t>(options.records));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(),
               std::mt19937_64(options.seed * 1'000'003 + static_cast<std::uint64_t>(round)));
  return order;
}

template <class Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Allocates memory as the cache does: mapped pages, huge if possible.
class Memory {
 public:
  explicit Memory(std::int64_t bytes) : size_(static_cast<std::size_t>(bytes)) {
    void* const memory =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    (void)::madvise(memory, size_, MADV_HUGEPAGE);
    bytes_ = static_cast<char*>(memory);
    std::memset(bytes_, 1, size_);
  }
  ~Memory() { ::munmap(bytes_, size_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  char* at(std::int64_t place) const { return bytes_ + place; }

 private:
  std::size_t size_;
  char* bytes_;
};

struct Tier {
  std::string name;
  std::vector<double> machine;  // bytes per second, by round
  std::vector<double> cache;
};

void fill(FeatureCache& cache, const Options& options) {
  std::string record(static_cast<std::size_t>(options.bytes), '\0');
  for (std::int64_t sample = 0; sample < options.records; ++sample) {
    std::memset(record.data(), static_cast<int>(sample % 251), record.size());
    cache.store(sample, 0, record);
  }
  if (!cache.is_whole()) throw std::runtime_error("there is no room for the records");
}

// Reads one micro-batch, one record after another.
void read_records(FeatureCache& cache, const Options& options,
                  std::span<const std::int64_t> samples, char* into) {
  const FeatureCache::Found found = cache.find(samples, 0);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!cache.read(found, i, into + static_cast<std::int64_t>(i) * options.bytes)) {
      throw std::runtime_error("a record is lost");
    }
  }
}

// Cuts the samples of an epoch into micro-batches.
std::vector<Order> cut(const Order& order, const Options& options) {
  std::vector<Order> micro_batches;
  const auto size = static_cast<std::ptrdiff_t>(options.micro_batch);
  const auto count = static_cast<std::ptrdiff_t>(order.size());
  for (std::ptrdiff_t first = 0; first < count; first += size) {
    micro_batches.emplace_back(order.begin() + first,
                               order.begin() + std::min(first + size, count));
  }
  return micro_batches;
}

// Reads an epoch, each micro-batch into the same place; returns seconds.
double read_epoch(FeatureCache& cache, const Options& options, const Order& order, Memory& into) {
  const std::vector<Order> micro_batches = cut(order, options);
  return seconds_of([&] {
    for (const Order& samples : micro_batches) read_records(cache, options, samples, into.at(0));
  });
}

// Reads an epoch as a run does: a step ahead, in the background, each micro-batch into a tensor of
// its own.
double read_epoch_ahead(FeatureCache& cache, const Options& options, const Order& order) {
  ReadAhead ahead(
      [&](const Order& samples) {
        const auto rows = static_cast<std::int64_t>(samples.size());
        const at::Tensor tensor = at::empty({rows, options.bytes}, at::kByte);
        read_records(cache, options, samples, static_cast<char*>(tensor.data_ptr()));
        return std::vector<PrefixRows>{{.depth = 1, .tensors = {tensor}}};
      },
      ReadAhead::kReadersOfDisk);
  const std::vector<Order> micro_batches = cut(order, options);
  const auto step = [&](std::size_t first) {
    const std::size_t begin = std::min(first, micro_batches.size());
    const std::size_t end = std::min(first + kStep, micro_batches.size());
    return std::span(micro_batches).subspan(begin, end - begin);
  };
  const auto expect = [&](std::span<const Order> steps) {
    ahead.expect({steps.begin(), steps.end()});
  };
  return seconds_of([&] {
    expect(step(0));
    for (std::size_t first = 0; first < micro_batches.size(); first += kStep) {
      expect(step(first + kStep));
      for (const Order& samples : step(first)) {
        if (!ahead.take(samples)) throw std::runtime_error("a micro-batch was not read ahead");
      }
    }
  });
}

Tier measure_memory(const Options& options) {
  const FileSystem files = real_file_system();
  const std::int64_t all = options.records * options.bytes;
  const std::int64_t room = options.records * ((options.bytes + 63) / 64 * 64);
  FeatureCache cache(files, {Bytes{room}, {}, {}}, options.records, 1, Bytes{options.bytes});
  cache.use({.layers = {1}}, Bytes{options.bytes});
  fill(cache, options);
  const Memory from(all);
  Memory into(options.micro_batch * options.bytes);
  Tier tier{"memory", {}, {}};
  for (int round = 0; round < options.rounds; ++round) {
    const Order order = draw_order(options, round);
    const double copied = seconds_of([&] {
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto place = static_cast<std::int64_t>(i) % options.micro_batch;
        std::memcpy(into.at(place * options.bytes), from.at(order[i] * options.bytes),
                    static_cast<std::size_t>(options.bytes));
      }
    });
    tier.machine.push_back(static_cast<double>(all) / copied);
    tier.cache.push_back(static_cast<double>(all) / read_epoch(cache, options, order, into));
  }
  return tier;
}

Tier measure_disk(const Options& options) {
  const WatchedFiles watched;
  const std::int64_t stride = (options.bytes + 63) / 64 * 64;
  FeatureCache cache(watched.files(), {{}, Bytes{options.records * stride}, options.folder},
                     options.records, 1, Bytes{options.bytes});
  cache.use({.layers = {1}}, Bytes{options.bytes});
  fill(cache, options);
  const Memory piece(4 << 20);
  const auto all = static_cast<double>(options.records * stride);
  Tier tier{"disk", {}, {}};
  for (int round = 0; round < options.rounds; ++round) {
    watched.drop_pages();
    const double read = seconds_of([&] {
      off_t place = 0;
      while (const ssize_t count = ::pread(watched.last(), piece.at(0), 4 << 20, place)) {
        if (count < 0) throw std::runtime_error("the file cannot be read");
        place += count;
      }
    });
    tier.machine.push_back(all / read);
    watched.drop_pages();
    tier.cache.push_back(all / read_epoch_ahead(cache, options, draw_order(options, round)));
  }
  return tier;
}

RatioInterval compare(const Tier& tier, std::uint64_t seed) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < tier.cache.size(); ++i) {
    ratios.push_back(tier.cache[i] / tier.machine[i]);
  }
  return bootstrap_ratio(ratios, seed);
}

std::string rate_text(const std::vector<double>& rates) {
  const Spread spread = find_spread(rates);
  return to_range_text(spread.median / kGigabyte, spread.least / kGigabyte, spread.most / kGigabyte,
                       2);
}

void print(const Tier& tier, const Options& options) {
  const RatioInterval ratio = compare(tier, options.seed);
  const std::string verdict = verdict_at_least(ratio.low, ratio.high, kBar);
  if (options.json) {
    const nlohmann::ordered_json line{
        {"tier", tier.name},
        {"records", options.records},
        {"record_bytes", options.bytes},
        {"machine_bytes_per_second", find_spread(tier.machine).median},
        {"cache_bytes_per_second", find_spread(tier.cache).median},
        {"ratio", {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}}},
        {"bar", kBar},
        {"verdict", verdict}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("%-6s  machine %s GB/s, cache %s GB/s, cache / machine %s; bar %s: %s\n",
              tier.name.c_str(), rate_text(tier.machine).c_str(), rate_text(tier.cache).c_str(),
              to_range_text(ratio.median, ratio.low, ratio.high, 3).c_str(), fixed(kBar, 2).c_str(),
              verdict.c_str());
}

ExitCode run(const Flags& flags) {
  const Options options = read_options(flags);
  const ForeignLoad load;
  print(measure_memory(options), options);
  print(measure_disk(options), options);
  if (!options.json) {
    std::printf("%lld records of %lld bytes, %d rounds; %s\n",
                static_cast<long long>(options.records), static_cast<long long>(options.bytes),
                options.rounds, to_load_text(load.cores()).c_str());
  }
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  const Verb verb{"bench_feature_cache",
                  "Compares reading cached features with what memory and disk give.",
                  "bench_feature_cache [--records N] [--bytes N] [--folder DIR] [--json]"};
  return run_verb(verb, argc, argv, describe_flags(), run);
}
