#pragma once
// What the devices of a run are asked to do between and in steps, and what they answer. A job runs
// on all devices at once; the answers of the devices of one process are joined by its DevicePool,
// those of all processes by the Run.

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "exec/cache/cache_tally.h"
#include "exec/measuring/memory_account.h"
#include "exec/measuring/recorder.h"
#include "exec/run/jobs/layer_digest.h"
#include "exec/run/loss_sample.h"
#include "exec/state/weight_versions.h"
#include "exec/tensors/sample_range.h"
#include "profiles/units.h"
#include "traces/timeline.h"

namespace frazil {

// A step over the global micro-batches; the last ones may be missing or short (a short batch).
struct StepOrder {
  Step step = 0;
  double learning_rate = 0;
  std::vector<double> rate_factors = {};  // of the blocks' learning rates; empty: all 1
  Measurement measurement = {};
  bool records = false;      // spans are answered
  bool uses_cache = false;   // the samples' numbers in a cache are told
  Duration longest_wait{0};  // 0: as before
  // The samples of the next step, which every process can prepare, and read from its cache.
  std::optional<SampleRange> next = {};
  bool reads_ahead = false;
};

// The time that a device was busy with actions of its compute lane in a step.
struct ComputeTime {
  DeviceId device;
  Duration time{0};
};

struct StepAnswer {
  std::vector<LossSample> losses;
  // The last layer whose gradient was not finite, if there is one.
  std::optional<LayerId> non_finite_gradient;
  std::vector<GradientSquares> gradient_squares;
  std::vector<ComputeTime> compute;  // by device
  std::vector<Span> spans;
  std::vector<MeasuredMemory> memory;
  std::vector<WeightRead> weight_reads;
  std::string note;                 // what ran in place of the plan's schedule, and why
  std::optional<CacheTally> cache;  // none: the step used no cache
  // By the steady clock of the process: the zero of the times above.
  Duration zero{0};
};

struct StepResult {
  double loss = 0;  // mean over the step's samples
  // From handing the step out to the last device's end; of a step in a window, its share of that.
  Duration wall{0};
  std::vector<ComputeTime> compute;    // of all devices
  std::vector<Span> spans;             // of all devices; empty unless recording
  std::vector<MeasuredMemory> memory;  // by device; empty unless measured
  // The reads of all stages; empty without weight versions and without steps ahead.
  std::vector<WeightRead> weight_reads;
  std::vector<double> gradient_squares;  // by layer, where they are measured; 0: no gradient
  // The last layer whose gradient was not finite, if there is one: its weights are lost, and so are
  // those of layers before it that it has sent gradients to.
  std::optional<LayerId> non_finite_gradient;
  // Tells what ran in place of a short batch whose plan's schedule is illegal for it, or why steps
  // were handed out one by one although the plan lets devices go ahead; else empty.
  std::string note;
  // How sure times of different processes are beside each other; none: there is one clock.
  std::optional<Duration> clock_uncertainty = std::nullopt;
};

// Puts the times of an answer on another clock: adds `shift` to each.
void shift_times(StepAnswer& answer, Duration shift);

// Joins what all devices have answered; all but `wall` is filled in. `squares`: of how many layers
// gradient squares are measured.
StepResult join_answers(std::vector<StepAnswer> answers, std::size_t squares);

// A mean loss over a micro-batch times what it is a mean over: its samples, or the labels that
// count.
struct LossTerm {
  int micro_batch = 0;
  LayerId layer;
  double value = 0;
  std::int64_t count = 0;
  friend auto operator<=>(const LossTerm&, const LossTerm&) = default;
};

struct EvaluationAnswer {
  std::vector<LossTerm> losses;
  std::int64_t right = 0;   // answers of a classifier
  std::int64_t judged = 0;  // all its answers
};

// Returns the elements of all parts, one part after another.
template <class T>
std::vector<T> joined(std::vector<std::vector<T>> parts) {
  std::vector<T> all;
  for (std::vector<T>& some : parts) {
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  }
  return all;
}

// A number, or numbers, that one device has found for a block.
struct BlockNumbers {
  BlockId block;
  LayerId layer;  // of which they are found
  std::vector<double> values;
};

}  // namespace frazil
