// These tests read the cache of a run configuration.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "exec/config/run_config.h"
#include "profiles/error.h"

namespace frazil {
namespace {

RunConfig parse_cache(const std::string& cache) {
  return parse_run_config(R"({"format": "frazil.run", "version": 1, "cache": )" + cache + "}",
                          "run.json");
}

TEST(CacheConfig, IsOffUnlessAskedFor) {
  EXPECT_FALSE(RunConfig{}.cache.is_on());
  EXPECT_EQ(parse_cache("{}"), RunConfig{});
  EXPECT_EQ(parse_cache(R"({"kind": "off"})"), RunConfig{});
}

TEST(CacheConfig, TakesLimitsFolderPrecisionAndCheckAndRoundTrips) {
  CacheConfig expected{.kind = CacheConfig::Kind::kOn};
  EXPECT_EQ(parse_cache(R"({"kind": "on"})").cache, expected);
  expected.memory = Bytes{0};
  expected.disk = Bytes{1LL << 40};
  expected.folder = "features";
  expected.precision = FeaturePrecision::kBfloat16;
  expected.check = true;
  expected.admission = CacheConfig::Admission::kAlways;
  expected.shared_by = CacheConfig::SharedBy::kProcess;
  expected.memory_link = {Duration{7}, BytesPerSecond{5'000}};
  expected.disk_link = {Duration{9}, BytesPerSecond{3'000}};
  const RunConfig config = parse_cache(
      R"({"kind": "on", "memory_bytes": 0, "disk_bytes": 1099511627776, "folder": "features",
          "precision": "bfloat16", "check": true, "admission": "always",
          "shared_by": "process", "memory_bandwidth_bytes_per_second": 5000, "memory_latency_ns": 7,
          "disk_bandwidth_bytes_per_second": 3000, "disk_latency_ns": 9})");
  EXPECT_EQ(config.cache, expected);
  EXPECT_EQ(parse_run_config(to_json(config), "run.json"), config);
}

TEST(CacheConfig, HasItsFolderBesideTheFile) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "cache_config_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "run.json")
      << R"({"format": "frazil.run", "version": 1, "cache": {"kind": "on", "folder": "../kept"}})";
  EXPECT_EQ(read_run_config(folder / "run.json").cache.folder,
            (std::filesystem::absolute(folder).parent_path() / "kept").lexically_normal());
  std::filesystem::remove_all(folder);
}

TEST(CacheConfig, RefusesWhatItDoesNotKnow) {
  struct Refusal {
    std::string cache;
    std::string sentence;
  };
  const std::vector<Refusal> refusals{
      {R"({"kind": "ram"})", R"(found `"ram"` at $.cache.kind, expected "off" or "on")"},
      {R"({"memory_bytes": 5})",
       R"(found the unknown key "memory_bytes" at $.cache, expected no keys but "kind")"},
      {R"({"kind": "on", "memory_bytes": -1})",
       "found `-1` at $.cache.memory_bytes, expected an integer from 0 to 9007199254740992"},
      {R"({"kind": "on", "precision": "float16"})",
       R"(found `"float16"` at $.cache.precision, expected "float32" or "bfloat16"; did you mean bfloat16?)"},
      {R"({"kind": "on", "check": 1})", "found `1` at $.cache.check, expected `true` or `false`"},
      {R"({"kind": "on", "bytes": 1})",
       R"(found the unknown key "bytes" at $.cache, expected no keys but "kind", "memory_bytes", )"
       R"("disk_bytes", "folder", "precision", "check", "admission", "shared_by", )"
       R"("memory_bandwidth_bytes_per_second", "memory_latency_ns", )"
       R"("disk_bandwidth_bytes_per_second", "disk_latency_ns")"},
      {R"({"kind": "on", "admission": "never"})",
       R"(found `"never"` at $.cache.admission, expected "predicted" or "always")"},
      {R"({"kind": "on", "shared_by": "hosts"})",
       R"(found `"hosts"` at $.cache.shared_by, expected "host" or "process"; did you mean host?)"},
      {R"({"kind": "on", "disk_bandwidth_bytes_per_second": 0})",
       "found `0` at $.cache.disk_bandwidth_bytes_per_second, expected an integer from 1 to "
       "9007199254740992"}};
  for (const Refusal& refusal : refusals) {
    try {
      (void)parse_cache(refusal.cache);
      ADD_FAILURE() << "read although: " << refusal.sentence;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), "run.json:1: " + refusal.sentence);
    }
  }
}

}  // namespace
}  // namespace frazil
