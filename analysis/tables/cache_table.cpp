#include "analysis/tables/cache_table.h"

#include <fmt/format.h>

#include "profiles/quantity_text.h"

namespace frazil {
namespace {

std::string ms_text(Duration time) {
  return time == Duration{0} ? "-" : fmt::format("{:.3f}", to_ms(time));
}

std::string bytes_or_dash(Bytes bytes) { return bytes.count == 0 ? "-" : to_text(bytes); }

}  // namespace

Table tabulate_cache(const FreezeTrace& trace) {
  Table table{.header = {"before step", "cache", "layers", "samples", "in memory", "on disk",
                         "predicted ms", "measured ms", "ratio", ""},
              .rows = {}};
  for (const FreezeEvent& event : trace.events) {
    const auto* cache = std::get_if<CacheEvent>(&event.what);
    if (cache == nullptr) continue;
    const bool both = cache->predicted > Duration{0} && cache->measured > Duration{0};
    table.rows.push_back(
        {std::to_string(event.step), std::string(name_of(cache->change)),
         std::to_string(cache->layers), std::to_string(cache->samples),
         bytes_or_dash(cache->memory), bytes_or_dash(cache->disk), ms_text(cache->predicted),
         ms_text(cache->measured),
         both ? fmt::format("{:.3f}", static_cast<double>(cache->predicted.count()) /
                                          static_cast<double>(cache->measured.count()))
              : "-",
         cache->note});
  }
  return table;
}

}  // namespace frazil
