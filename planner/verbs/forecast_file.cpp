#include "planner/verbs/forecast_file.h"

#include <fmt/format.h>

#include "profiles/error.h"
#include "profiles/model_profile_json.h"

namespace frazil {

FreezeTrace read_forecast(const std::string& file, const ModelProfile& profile) {
  FreezeTrace trace = read_freeze_trace(file);
  if (trace.blocks.size() != profile.blocks.size()) {
    throw InputError(file, 1, fmt::format("{} blocks", trace.blocks.size()),
                     fmt::format("the model's {}", profile.blocks.size()));
  }
  if (!trace.model_hash.empty() && trace.model_hash != model_hash(profile)) {
    throw InputError(file, 1, "a trace of the model " + trace.model_hash,
                     "one of the profile's, " + model_hash(profile));
  }
  return trace;
}

void refuse_other_batch(const FreezeTrace& trace, const std::string& file, int batch_size) {
  if (trace.batch_size == 0 || trace.batch_size == batch_size) return;
  throw InputError(file, 1, fmt::format("steps of {} samples", trace.batch_size),
                   fmt::format("steps of --batch {}", batch_size));
}

std::vector<ForecastSegment> read_segments(const FreezeTrace& trace, const std::string& file,
                                           Setting setting) {
  return split_at_drifts(find_segments(trace, file), trace, file, setting);
}

}  // namespace frazil
