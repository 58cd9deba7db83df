#pragma once
// Reads the freeze trace that a question about masks to come is asked with.

#include <string>
#include <vector>

#include "planner/trajectory/forecast_segments.h"
#include "profiles/model_profile.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Reads the trace of --forecast. Throws InputError as read_freeze_trace() does, and for a trace of
// another number of blocks or of another model than the profile's.
FreezeTrace read_forecast(const std::string& file, const ModelProfile& profile);
// Throws InputError if the steps of the trace have another number of samples than --batch says; a
// trace that does not tell how many is taken.
void refuse_other_batch(const FreezeTrace& trace, const std::string& file, int batch_size);
// Returns the segments of the trace, split where its run has found its costs to drift. Throws as
// find_segments() and split_at_drifts() do.
std::vector<ForecastSegment> read_segments(const FreezeTrace& trace, const std::string& file,
                                           Setting setting);

}  // namespace frazil
