#include "traces/log_costs.h"

#include <cstddef>

namespace frazil {
namespace {

class Stretches {
 public:
  void begin(Step step) {
    first_ = step;
    place_ = events_.size();
    cost_ = {};
  }
  void add(const StepEvent& step) {
    ++cost_.steps;
    cost_.samples += step.samples;
    cost_.measured += step.time;
  }
  // Inserts the cost event where its stretch began, though its sum is known only now.
  void end() {
    if (cost_.steps == 0) return;
    events_.insert(events_.begin() + static_cast<std::ptrdiff_t>(place_), {first_, cost_});
    cost_ = {};
  }
  void push(const FreezeEvent& event) { events_.push_back(event); }
  std::vector<FreezeEvent> take() {
    end();
    return std::move(events_);
  }

 private:
  std::vector<FreezeEvent> events_;
  Step first_ = 0;
  std::size_t place_ = 0;
  CostEvent cost_;
};

}  // namespace

std::vector<FreezeEvent> add_costs(const FreezeTrace& log) {
  Stretches stretches;
  int batch_size = log.batch_size;
  for (const FreezeEvent& event : log.events) {
    const auto* step = std::get_if<StepEvent>(&event.what);
    if (step != nullptr && step->samples == batch_size) stretches.add(*step);
    const auto* plan = std::get_if<PlanEvent>(&event.what);
    if (plan != nullptr) batch_size = plan->batch_size > 0 ? plan->batch_size : log.batch_size;
    const bool begins = plan != nullptr || std::holds_alternative<EvalEvent>(event.what);
    if (begins) stretches.end();
    stretches.push(event);
    if (begins || std::holds_alternative<TransitionEvent>(event.what)) stretches.begin(event.step);
  }
  return stretches.take();
}

}  // namespace frazil
