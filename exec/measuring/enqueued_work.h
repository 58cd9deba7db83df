#pragma once
// EnqueuedWork is what a device has been given in a step by a host that runs ahead of it: actions
// and, inside them, phases of layers, each between two timed events. The host looks which have
// ended whenever it gives the device more, and waits for the rest at the step's end. Events give
// times from one another; at its begin, when its device is idle, a step is laid to the host's
// clock.

#include <cstddef>
#include <functional>
#include <vector>

#include "exec/devices/gpu_lanes.h"
#include "exec/measuring/layer_sample.h"
#include "profiles/units.h"
#include "traces/timeline.h"

namespace frazil {

class EnqueuedWork {
 public:
  // `lanes` must outlive this object.
  explicit EnqueuedWork(const GpuLanes& lanes) : lanes_(lanes) {}

  // Begins a step at this time. Requires: the device has done all that it was given.
  void begin(TimePoint now);
  // Begins an action's work on its lane.
  DeviceEvent begin_action(Lane lane);
  // Ends an action, whose span has no times yet. `source` must live until the step is settled.
  void end_action(Span span, const Action& source, DeviceEvent start);
  // Ends a phase of a layer, which began where the phase before it ended, or else its action.
  void end_phase(const LayerSample& sample);
  // Returns how many actions have ended since the last look; never waits. Throws the GPU's error.
  int look();

  // Says which action is waited for.
  using Tell = std::function<void(const Action*)>;
  // Waits for all actions that have been enqueued, one by one, each at most as long as the device's
  // deadline. Throws as GpuLanes::wait_for(). `on_end` is called for each action that has ended.
  void catch_up(const Tell& tell, const std::function<void()>& on_end);
  // Waits so for all of the step.
  void settle(const Tell& tell, const std::function<void()>& on_end);
  // Returns the action whose events tell an error of the GPU, the first not known to have ended;
  // null if none does.
  const Action* find_failed() const;

  std::vector<Span> take_spans();
  std::vector<LayerSample> take_layer_samples();

 private:
  struct Part {
    Span span;
    const Action* source = nullptr;
    DeviceEvent start;
    DeviceEvent end;
  };
  struct Phase {
    LayerSample sample;
    DeviceEvent start;
    DeviceEvent end;
  };

  TimePoint time_of(const DeviceEvent& event) const;
  void close(Part& part);

  const GpuLanes& lanes_;
  TimePoint begin_time_{};
  DeviceEvent begin_;
  DeviceEvent phase_begin_;
  std::vector<Part> parts_;  // in the order of the list
  std::size_t ended_ = 0;    // of them
  TimePoint worked_until_{};
  std::vector<Phase> phases_;
  std::vector<Span> spans_;
  std::vector<LayerSample> samples_;
};

}  // namespace frazil
