#pragma once
// A layer takes this beside what the simulator counts for it, measured alone on one device.

#include <cstdint>
#include <map>

#include "exec/run/run.h"

namespace frazil {

// The room of a layer, or of the layers of a stage.
struct Room {
  std::map<ActionKind, std::int64_t> of;  // while an action runs: of one layer at a time
  std::int64_t half = 0;                  // of each micro-batch between I and W: of all layers
};

void add_layer(const Room& layer, Room& stage);

struct MeasuredLayers {
  const ModelSpec& model;
  const OptimizerConfig& optimizer;
  const Activity& activity;
  const Samples& micro_batch;
};

// Makes the state before any update; parameters train as the activity says.
DeviceState make_start_state(const ModelSpec& model, const Activity& activity);

// Measures F, and B, or I and W, or R and B, and U, with moments there and gradients to be clipped.
// A B or W ends with the gradients added to those of another micro-batch. `state` holds every
// layer.
Room measure_room(const MeasuredLayers& layers, DeviceState& state, LayerId layer, bool splits,
                  bool recomputes);

}  // namespace frazil
