#include "exec/run/step_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace frazil {
namespace {

template <class T>
void move_behind(std::vector<T>& all, std::vector<T> some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
}

Duration sum_compute(const std::vector<Span>& spans) {
  Duration sum{0};
  for (const Span& span : spans) {
    if (span.lane == Lane::kCompute) sum += span.duration();
  }
  return sum;
}

}  // namespace

int count_samples(const std::vector<Samples>& micro_batches) {
  int count = 0;
  for (const Samples& samples : micro_batches) count += static_cast<int>(samples.count());
  return count;
}

StepPart take_part(Recorder& recorder, Bytes allocated) {
  StepPart part{.device = recorder.device(),
                .losses = {},
                .non_finite = {},
                .gradient_squares = recorder.take_gradient_squares(),
                .spans = recorder.take_spans(),
                .weight_reads = recorder.take_weight_reads(),
                .memory = {}};
  if (!recorder.memory().is_open()) return part;
  part.memory = recorder.memory().take();
  part.memory->allocator_peak += allocated;
  return part;
}

StepAnswer join_parts(std::vector<StepPart> parts, bool records) {
  StepAnswer answer;
  for (StepPart& part : parts) {
    move_behind(answer.losses, std::move(part.losses));
    move_behind(answer.gradient_squares, std::move(part.gradient_squares));
    move_behind(answer.weight_reads, std::move(part.weight_reads));
    answer.non_finite_gradient = std::max(answer.non_finite_gradient, part.non_finite);
    answer.compute.push_back({part.device, sum_compute(part.spans)});
    if (records) move_behind(answer.spans, std::move(part.spans));
    if (part.memory) answer.memory.push_back(*std::move(part.memory));
  }
  return answer;
}

}  // namespace frazil
