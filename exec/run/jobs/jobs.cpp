#include "exec/run/jobs/jobs.h"

#include <algorithm>
#include <iterator>

namespace frazil {
namespace {

template <class T>
void move_into(std::vector<T>& all, std::vector<T>& some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
}

}  // namespace

void shift_times(StepAnswer& answer, Duration shift) {
  for (Span& span : answer.spans) {
    span.start += shift;
    span.end += shift;
  }
  for (MeasuredMemory& memory : answer.memory) {
    for (MemoryMoment& moment : memory.curve) moment.at += shift;
  }
}

// Losses are added in the order of micro-batches, wherever they come from.
StepResult join_answers(std::vector<StepAnswer> answers, std::size_t squares) {
  StepResult result;
  result.gradient_squares.resize(squares);
  std::vector<LossSample> losses;
  for (StepAnswer& answer : answers) {
    move_into(losses, answer.losses);
    for (const GradientSquares& one : answer.gradient_squares) {
      result.gradient_squares.at(one.layer.index()) += one.value;
    }
    move_into(result.compute, answer.compute);
    move_into(result.spans, answer.spans);
    move_into(result.memory, answer.memory);
    move_into(result.weight_reads, answer.weight_reads);
    result.non_finite_gradient = std::max(result.non_finite_gradient, answer.non_finite_gradient);
    if (result.note.empty()) result.note = answer.note;
  }
  std::sort(losses.begin(), losses.end());
  for (const LossSample& loss : losses) result.loss += loss.value;
  return result;
}

}  // namespace frazil
