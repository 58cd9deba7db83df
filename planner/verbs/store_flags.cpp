#include "planner/verbs/store_flags.h"

#include <fmt/format.h>

#include "profiles/quantity_text.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

std::optional<CacheTier> read_tier(const Flags& values, const std::string& name, Link link) {
  const std::optional<std::string> limit = optional_text(values, name);
  const std::optional<std::string> bandwidth = optional_text(values, name + "-bandwidth");
  if (!limit) {
    for (const char* speed : {"-bandwidth", "-latency"}) {
      if (values.count(name + speed) == 0) continue;
      refuse_flags(fmt::format("--{}{} without --{}", name, speed, name), "both");
    }
    return std::nullopt;
  }
  if (bandwidth) link.bandwidth = parse_bandwidth(*bandwidth, "--" + name + "-bandwidth");
  link.latency = duration_or(values, name + "-latency", link.latency);
  const Bytes bytes = parse_bytes(*limit, "--" + name);
  if (bytes.count == 0) {
    refuse_flags(fmt::format("--{} {}", name, *limit), "some room, or no such flag");
  }
  return CacheTier{bytes, link};
}

}  // namespace

void add_store_flags(po::options_description& flags) {
  flags.add_options()  //
      ("samples", text_value("N"),
       "with --forecast: samples of an epoch; their frozen prefix's output is cached")  //
      ("cache-memory", text_value("SIZE"),
       "with --forecast: how much memory the cache may take")  //
      ("cache-memory-bandwidth", text_value("RATE"),
       "with --forecast: rate at which the cache in memory is read and written (default 8GB/s)")  //
      ("cache-memory-latency", text_value("TIME"),
       "with --forecast: latency of the cache in memory per micro-batch (default 0ms)")  //
      ("cache-disk", text_value("SIZE"),
       "with --forecast: how much of the disk the cache may take")  //
      ("cache-disk-bandwidth", text_value("RATE"),
       "with --forecast: rate at which the cache on disk is read and written (default 1GB/s)")  //
      ("cache-disk-latency", text_value("TIME"),
       "with --forecast: latency of the cache on disk per micro-batch (default 0.1ms)");
}

std::optional<FeatureStore> read_store(const Flags& values) {
  const std::optional<CacheTier> memory = read_tier(values, "cache-memory", kMemoryLink);
  const std::optional<CacheTier> disk = read_tier(values, "cache-disk", kDiskLink);
  const bool some = memory || disk;
  if (!some && values.count("samples") == 0) return std::nullopt;
  if (!some) refuse_flags("--samples without --cache-memory or --cache-disk", "one of them");
  if (values.count("samples") == 0) {
    refuse_flags("a cache without --samples", "how many samples an epoch has");
  }
  return FeatureStore{required_integer(values, "samples", 1, 2'000'000'000),
                      memory.value_or(CacheTier{}), disk.value_or(CacheTier{})};
}

void refuse_store_flags(const Flags& values, const char* without) {
  for (const char* name :
       {"samples", "cache-memory", "cache-memory-bandwidth", "cache-memory-latency", "cache-disk",
        "cache-disk-bandwidth", "cache-disk-latency"}) {
    if (values.count(name) > 0) refuse_flags(fmt::format("--{} without {}", name, without), "both");
  }
}

}  // namespace frazil
