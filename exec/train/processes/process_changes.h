#pragma once
// The processes of a run change while it trains: some are lost, others come. ProcessChanges goes on
// with those that are there, under a plan for their devices, does again what was under way, and
// records what has happened and how long it took.

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "exec/devices/steady_time.h"
#include "exec/run/run.h"
#include "exec/train/plans/elastic_plan.h"
#include "exec/train/processes/silences.h"
#include "exec/train/trace_recorder.h"

namespace frazil {

class ProcessChanges {
 public:
  struct Calls {
    // Ends the phase in force, makes the transition and begins the phase of the plan that it gives.
    std::function<void(Step, const std::function<ElasticPlan::Transitioned()>&)> change_phase;
    std::function<void(Step, const std::string& sentence, bool is_warning)> tell;
  };

  // The references must outlive this object.
  ProcessChanges(Run& run, ElasticPlan& plans, TraceRecorder& recorder, Silences& silences,
                 Calls calls)
      : run_(run),
        plans_(plans),
        recorder_(recorder),
        silences_(silences),
        calls_(std::move(calls)) {}

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
  // Takes in the processes that have come and are ready, between two steps, under a new plan.
  // Requires: a plan is in force.
  void take_in(Step step);
  // Takes note of a step that is done.
  void end_step(Step step);

 private:
  ElasticPlan::Transitioned recover_under(const FreezeMask& mask, Step step);
  void note(Step step, MembersChange change, std::string sentence,
            const std::optional<RecoveryTimes>& times = std::nullopt);
  void write_noted();
  void note_lost(Step step, const ElasticPlan::Recovered& recovered);
  void note_silences(Step step);
  void note_arrivals(Step step);

  struct Recovery {
    SteadyTime found;  // the loss
    RecoveryTimes times;
  };

  Run& run_;
  ElasticPlan& plans_;
  TraceRecorder& recorder_;
  Silences& silences_;
  Calls calls_;
  std::optional<Recovery> recovery_;  // until a step is done after it
  bool has_stepped_ = false;
  std::vector<FreezeEvent> noted_;  // and not yet written
};

}  // namespace frazil
