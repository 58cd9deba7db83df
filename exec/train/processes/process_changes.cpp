#include "exec/train/processes/process_changes.h"

namespace frazil {

void ProcessChanges::note(Step step, MembersChange change, std::string sentence,
                          const std::optional<RecoveryTimes>& times) {
  MembersEvent event{.change = change,
                     .devices = static_cast<int>(run_.devices_there().size()),
                     .note = std::move(sentence),
                     .times = times};
  noted_.push_back({step, std::move(event)});
  if (has_stepped_) write_noted();
}

// What happens before the first step is written with it: a run writes nothing before it begins.
void ProcessChanges::write_noted() {
  for (const FreezeEvent& event : std::exchange(noted_, {})) recorder_.note(event);
}

void ProcessChanges::note_silences(Step step) {
  for (Silence& silence : silences_.take()) {
    note(step, silence.is_over ? MembersChange::kHeard : MembersChange::kSuspected,
         std::move(silence.sentence));
  }
}

void ProcessChanges::note_arrivals(Step step) {
  for (const std::string& sentence : run_.take_arrivals()) {
    calls_.tell(step, sentence, false);
    note(step, MembersChange::kCame, sentence);
  }
}

// What a recovery has cost is told when a step is done after it. Several losses before that are
// one.
void ProcessChanges::note_lost(Step step, const ElasticPlan::Recovered& recovered) {
  for (const std::string& sentence : recovered.lost) {
    calls_.tell(step, sentence, true);
    note(step, MembersChange::kLost, sentence);
  }
  const std::optional<LossMoment> moment = run_.take_loss_moment();
  if (!recovery_ && moment) recovery_ = Recovery{moment->found, {.detection = moment->unheard}};
  if (!recovery_) return;
  const TransitionEvent& transition = recovered.transitioned.transition;
  recovery_->times.plan_ready = recovered.plan_ready;
  recovery_->times.plan += transition.plan_time;
  recovery_->times.transfer += transition.move_time + transition.start_time;
}

ElasticPlan::Transitioned ProcessChanges::recover_under(const FreezeMask& mask, Step step) {
  note_silences(step);
  ElasticPlan::Recovered recovered = plans_.recover(mask, step);
  note_lost(step, recovered);
  return std::move(recovered.transitioned);
}

ElasticPlan::Transitioned ProcessChanges::transition_to(const FreezeMask& mask, Step step) {
  try {
    return plans_.transition_to(mask, step);
  } catch (const StepUndone&) {
    return recover_under(mask, step);
  }
}

void ProcessChanges::recover(Step step) {
  // The plan in force goes with the devices that it used.
  const FreezeMask mask = run_.plan().mask;
  calls_.change_phase(step, [&] { return recover_under(mask, step); });
}

void ProcessChanges::take_in(Step step) {
  const bool are_ready = run_.sees_newcomers();
  note_arrivals(step);
  if (!are_ready) return;
  const FreezeMask mask = run_.plan().mask;
  calls_.change_phase(step, [&] {
    ElasticPlan::Recovered recovered = plans_.take_in(mask, step);
    note_arrivals(step);
    note_lost(step, recovered);
    return std::move(recovered.transitioned);
  });
}

void ProcessChanges::end_step(Step step) {
  has_stepped_ = true;
  write_noted();
  note_silences(step);
  if (!recovery_) return;
  recovery_->times.first_step = since(recovery_->found);
  note(step, MembersChange::kRecovered, "", recovery_->times);
  recovery_.reset();
}

}  // namespace frazil
