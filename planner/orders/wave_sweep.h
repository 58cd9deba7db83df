#pragma once
// One sweep over time that makes an order of ZB-V by cost, or times an order that is given. What
// the sweep decides is told in planner/orders/zero_bubble_v_orders.h. A WaveSweep does one of the
// two, once.

#include <array>
#include <cstddef>
#include <vector>

#include "planner/orders/device_order.h"
#include "planner/orders/wave_parts.h"

namespace frazil {

struct WavePipeline {
  std::vector<std::array<Duration, kWaveParts>> lengths;  // by device and part
  std::vector<Duration> loads;                            // by device: all of its work
  int micro_batches = 1;
  Duration hop{0};

  int devices() const { return static_cast<int>(lengths.size()); }
  int most_held() const { return 2 * devices(); }  // chunk-micro-batches on a device
};

// The quality of an order: the longest device span counts first, then the makespan.
struct WaveScore {
  Duration span = kFarAway;
  Duration makespan = kFarAway;
  friend auto operator<=>(const WaveScore&, const WaveScore&) = default;
};

// Which work a W that does not fit into a wait may delay, beside I of chunk 0.
struct WeightsFirst {
  bool before_forward = true;
  bool before_input_of_chunk1 = true;
};

class WaveSweep {
 public:
  // The pipeline must outlive the sweep.
  explicit WaveSweep(const WavePipeline& pipeline);

  // Makes an order. A device may idle as long as its span, or the span that `spans_before` (those
  // of the sweep before, or none) leave it, is not the longest. Returns false if some span reaches
  // `below` or if the pattern asks for work that cannot run; the order is then not complete.
  bool make(const WeightsFirst& weights_first, const std::vector<Duration>& spans_before,
            Duration below);
  // Times lists that are complete and wait for nothing for ever.
  void follow(const DeviceOrders& orders);

  // Each of these requires that the order is complete.
  WaveScore score() const;
  std::vector<Duration> spans() const;  // by device
  DeviceOrders orders() const;

 private:
  using enum WavePart;

  struct Device {
    std::array<int, kWaveParts> done{};
    Duration free{0};
    Duration span{0};             // at least, with the idle time so far
    int held = 0;                 // chunk-micro-batches, from F to W
    std::size_t weights = 0;      // those of `owed` that have run
    std::vector<WavePart> owed;   // a W for each I so far
    std::vector<WavePart> parts;  // the list so far

    int count(WavePart part) const { return done[index_of(part)]; }
    int forwards() const { return count(kF0) + count(kF1); }
    bool owes() const { return weights < owed.size(); }
  };

  Device& device(int d) { return devices_[static_cast<std::size_t>(d)]; }
  const Device& device(int d) const { return devices_[static_cast<std::size_t>(d)]; }
  bool has_left(WavePart part, int d) const;
  Duration length(WavePart part, int d) const;
  std::size_t place(int d, int micro_batch) const;
  WavePart part_of(const OrderedWork& work) const;
  int input_from(WavePart leg, int d) const;
  Duration arrival(WavePart leg, int d) const;
  Duration may_idle(int d) const;
  bool is_behind(int d) const;
  bool comes_back(int d) const;

  void allow_as_before(const std::vector<Duration>& spans);
  void fill();
  void even_out();
  void run_inputs(bool weights_first);
  void run_forwards(bool weights_first);
  void run_leg(WavePart leg, int d, bool weights_first);
  void run_weight(int d);
  void run(WavePart part, int d);

  const WavePipeline& pipeline_;
  std::vector<Device> devices_;
  std::array<std::vector<Duration>, kWaveLegs> ends_;  // by leg; by device, then micro-batch
  Duration longest_{0};                                // of the spans so far
  std::vector<Duration> allowed_;                      // by device: what its span may be anyway
  bool is_stuck_ = false;
};

}  // namespace frazil
