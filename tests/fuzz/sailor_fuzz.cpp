// Each of Sailor's readers refuses any text in a sentence or returns what it promises: rows without
// gaps that make a valid profile; bandwidths above zero; a plan whose stages, replicas and batch
// add up.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "profiles/import/sailor_links.h"
#include "profiles/import/sailor_plan.h"
#include "profiles/import/sailor_profile.h"
#include "profiles/model_profile_json.h"
#include "tests/fuzz/property.h"

namespace frazil {
namespace {

template <class Read>
auto read_or_refuse(std::string_view text, Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const InputError& error) {
    require_sentence(error, text);
    return std::nullopt;
  }
}

SailorSizes make_sizes(const SailorTimes& times) {
  SailorSizes sizes;
  for (const auto& [degree, rows] : times) {
    sizes[degree].assign(rows.begin()->second.size(), {Bytes{3}, Bytes{5}, Bytes{7}, Bytes{11}});
  }
  return sizes;
}

void check_times(std::string_view text) {
  const auto times = read_or_refuse(text, [&] { return parse_sailor_times(text, kFuzzedFile); });
  if (!times) return;
  const SailorSizes sizes = make_sizes(*times);
  for (const auto& [degree, rows] : *times) {
    const SailorConfig config{.model = "fuzzed",
                              .layers = static_cast<int>(rows.begin()->second.size()),
                              .optimizer = "Adam"};
    const ModelProfile profile = make_sailor_profile(config, *times, sizes, degree, kFuzzedFile);
    require(profile.layers.size() == rows.begin()->second.size(), "a layer for each of a row");
    require(profile.layers.front().costs.size() == rows.size(), "a cost for each row");
    require(parse_model_profile(to_json(profile), "made") == profile,
            "a profile that was made is read back");
  }
}

void check_sizes(std::string_view text) {
  const auto sizes =
      read_or_refuse(text, [&] { return parse_sailor_sizes(text, kFuzzedFile, "tiny"); });
  if (!sizes) return;
  for (const auto& [degree, layers] : *sizes) {
    require(degree > 0 && !layers.empty(), "sizes of some layers by degree");
  }
}

void check_links(std::string_view text) {
  const auto links =
      read_or_refuse(text, [&] { return parse_sailor_links(text, kFuzzedFile, "G"); });
  if (!links) return;
  for (const auto& [senders, fit] : links->between_nodes) {
    for (const std::int64_t message : {1LL, 1LL << 20, 1LL << 53}) {
      try {
        const BytesPerSecond bandwidth = bandwidth_at(fit, Bytes{message});
        require(bandwidth.count > 0, "a bandwidth is above zero");
        require(static_cast<double>(bandwidth.count) <= fit.largest + 1,
                "a bandwidth is at most the largest");
      } catch (const InputError& error) {
        require(!error.found().empty(), "a refusal says what it found");
      }
    }
  }
}

void check_plan(std::string_view text) {
  const auto plan = read_or_refuse(text, [&] { return parse_sailor_plan(text, kFuzzedFile); });
  if (!plan) return;
  int next = 0;
  for (const auto& stage : plan->stages) {
    require(!stage.empty(), "a stage has layers");
    for (const LayerId layer : stage) require(layer.value == next++, "layers are consecutive");
  }
  require(plan->layers() == next, "a plan holds the layers of its stages");
  require(plan->batch_size ==
              plan->micro_batches_per_replica() * plan->replicas * plan->micro_batch_size,
          "the batch divides among replicas and micro-batches");
  require(plan->degree > 0 && !plan->gpu.empty(), "a plan names its GPU and degree");
  require(find_suspect_values({*plan, *plan}).size() <= 3, "two plans are suspect thrice at most");
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  frazil::check_times(text);
  frazil::check_sizes(text);
  frazil::check_links(text);
  frazil::check_plan(text);
  frazil::read_or_refuse(text,
                         [&] { return frazil::parse_sailor_config(text, frazil::kFuzzedFile); });
  return 0;
}
