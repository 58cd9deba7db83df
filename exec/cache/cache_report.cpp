#include "exec/cache/cache_report.h"

namespace frazil {

std::string_view name_of(FeaturePrecision precision) {
  return kPrecisions.at(static_cast<std::size_t>(precision));
}

std::string name_layers(int depth) {
  return depth == 1 ? "layer 0" : "layers 0-" + std::to_string(depth - 1);
}

std::string to_text(const CacheReport& report) {
  const FeatureCounts& counts = report.counts;
  std::string text = "cache: ";
  text += report.depth == 0 ? "nothing at the end"
                            : name_layers(report.depth) + " at the end, " +
                                  std::to_string(report.bytes_per_sample.count) +
                                  " bytes a sample in " + std::string(name_of(report.precision));
  text += "; samples: " + std::to_string(counts.stored) + " stored, " +
          std::to_string(counts.found) + " found, " + std::to_string(counts.found_before) +
          " at the depth before, " + std::to_string(counts.missed) + " missed";
  if (counts.lost > 0) text += ", " + std::to_string(counts.lost) + " lost";
  if (counts.turned_away > 0) {
    text += ", " + std::to_string(counts.turned_away) + " without room";
  }
  const PrefixCounts& micro_batches = report.micro_batches;
  text += "; of " + std::to_string(micro_batches.asked) + " micro-batches " +
          std::to_string(micro_batches.whole) + " ran no frozen layer";
  if (micro_batches.parts > 0) {
    text += ", " + std::to_string(micro_batches.parts) + " for the missing samples alone";
  }
  if (report.processes.empty()) return text;
  text += report.caches == 1
              ? "; one cache for " + std::to_string(report.processes.size()) + " processes"
              : "; " + std::to_string(report.caches) + " caches that share nothing";
  for (const auto& [process, own] : report.processes) {
    text += ", process " + std::to_string(process) + " found " +
            std::to_string(own.found + own.found_before) + " and missed " +
            std::to_string(own.missed);
  }
  return text;
}

std::string warn_of_room(std::int64_t room, std::int64_t samples) {
  if (room >= samples) return "";
  return "the cache has room for the features of " + std::to_string(room) + " of " +
         std::to_string(samples) +
         " samples; those of the others are computed again in every epoch";
}

}  // namespace frazil
