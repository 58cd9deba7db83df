#pragma once
// The processes of a run change while it trains: some are lost. ProcessChanges goes on with those
// that are there, under a plan for their devices, and does again what was under way.

#include <functional>
#include <string>
#include <type_traits>

#include "exec/run/run.h"
#include "exec/train/elastic_plan.h"

namespace frazil {

class ProcessChanges {
 public:
  struct Calls {
    // Ends the phase in force, makes the transition and begins the phase of the plan that it gives.
    std::function<void(Step, const std::function<ElasticPlan::Transitioned()>&)> change_phase;
    std::function<void(Step, const std::string& sentence, bool is_warning)> tell;
  };

  // The references must outlive this object.
  ProcessChanges(Run& run, ElasticPlan& plans, Calls calls)
      : run_(run), plans_(plans), calls_(std::move(calls)) {}

  // Does a job of all processes again after one that was lost in it, under a new plan on the rest.
  template <class Job>
  std::invoke_result_t<const Job&> survive(Step step, const Job& job) {
    for (;;) {
      try {
        return job();
      } catch (const StepUndone&) {
        recover(step);
      }
    }
  }
  // Puts the plan for this mask in force, or the one on the rest if a process is lost meanwhile.
  ElasticPlan::Transitioned transition_to(const FreezeMask& mask, Step step);
  // Goes on without the processes that are lost: nobody has done what they were lost in. Throws
  // LayersLost.
  void recover(Step step);

 private:
  ElasticPlan::Transitioned recover_under(const FreezeMask& mask, Step step);

  Run& run_;
  ElasticPlan& plans_;
  Calls calls_;
};

}  // namespace frazil
