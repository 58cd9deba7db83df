#include "exec/config/configured_run.h"

#include <algorithm>
#include <chrono>

#include "exec/models/model_precision.h"
#include "exec/models/vit.h"
#include "exec/state/optimizer.h"

namespace frazil {

RunOptions run_options(const RunConfig& config, const DeviceChoice& devices) {
  RunOptions options{.order = config.message_order, .devices = devices};
  options.predicts_deadline = !config.deadline_seconds;
  if (config.deadline_seconds) {
    const std::chrono::duration<double> deadline(*config.deadline_seconds);
    options.deadline = std::max(std::chrono::round<Duration>(deadline), Duration{1});
  }
  return options;
}

LoaderConfig loader_config(const RunConfig& config) {
  return {.micro_batch_size = config.micro_batch_size,
          .seed = config.seed,
          .augmentation = config.augmentation};
}

ModelSpec make_model(const RunConfig& config) {
  return with_precision(make_vit(config.model), config.precision);
}

ModelProfile structure_of(const RunConfig& config) {
  return make_structure(make_model(config), optimizer_bytes_per_parameter_byte(config.optimizer));
}

}  // namespace frazil
