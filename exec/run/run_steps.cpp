// The part of the run (exec/run/run.h) that takes steps: one by one, or in windows.
#include "exec/run/run.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "exec/devices/steady_time.h"
#include "planner/plan/commit_round.h"
#include "planner/plan/step_window.h"
#include "profiles/error.h"

namespace frazil {

// Puts the times of all answers on the clock of this process, whose own answer is the first.
// Returns how sure they are.
std::optional<Duration> Run::align_clocks(const std::vector<int>& processes,
                                          std::vector<StepAnswer>& answers) const {
  std::optional<Duration> uncertainty;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    StepAnswer& answer = answers.at(i + 1);
    const ClockOffset clock = group_->clock_of(processes[i]);
    shift_times(answer, answer.zero - clock.offset - answers.front().zero);
    if (clock.is_known()) uncertainty = std::max(clock.uncertainty, uncertainty.value_or(kNoTime));
  }
  return uncertainty;
}

StepResult Run::step(Step step, double learning_rate, const std::vector<Samples>& micro_batches,
                     bool record, const std::vector<double>& rate_factors,
                     const std::vector<std::int64_t>& sample_ids, const SampleRange& range) {
  const StepOrder order{
      .step = step,
      .learning_rate = learning_rate,
      .rate_factors = rate_factors,
      .measurement = measurement_,
      .records = record,
      .uses_cache = !sample_ids.empty(),
      .longest_wait = options_.predicts_deadline ? step_deadline_.time() : Duration{0},
      .next = std::exchange(next_, std::nullopt),
      .reads_ahead = reads_ahead_};
  std::set<int> voters;
  if (group_) {
    for (const DeviceId device : pool_.voters()) {
      voters.insert(pool_.place().process_of[device.index()]);
    }
  }
  std::vector<int> answered;  // by members, after this process
  const SteadyTime begin = std::chrono::steady_clock::now();
  std::vector<StepAnswer> answers;
  try {
    answers = ask<StepAnswer>(
        StepJob{order, range}, [&] { return pool_.step(order, micro_batches, sample_ids); }, voters,
        step, &answered);
  } catch (const StepUndone& undone) {
    if (updates_at_end(plan())) throw;
    throw PeerLost(undone.what() +
                   std::string(", and what its plan updates on the way cannot be undone"));
  }
  // What is left of a process that was lost after the commit is what it said before.
  const std::optional<Duration> uncertainty =
      group_ && record ? align_clocks(answered, answers) : std::nullopt;
  for (const int process : voters) {
    const bool has_answered =
        std::find(answered.begin(), answered.end(), process) != answered.end();
    if (process == 0 || has_answered) continue;
    for (const std::string& note : group_->notes_of(process)) {
      answers.emplace_back().losses = decode<std::vector<LossSample>>(note);
    }
  }
  for (StepAnswer& answer : answers) {
    if (answer.cache) note(*std::move(answer.cache));
  }
  const Duration wall = since(begin);
  step_deadline_.record(wall);
  limit_waits();
  StepResult result =
      join_answers(std::move(answers), measurement_.gradient_squares ? model().layers.size() : 0);
  result.wall = wall;
  result.clock_uncertainty = uncertainty;
  return result;
}

StepResult Run::step(const StepRequest& request, bool record) {
  return step(request.step, request.learning_rate, request.micro_batches, record,
              request.rate_factors, request.sample_ids, request.range);
}

// Returns how many of the requests from `first` on make the next window. A window has short batches
// of one size.
std::size_t Run::count_window(const std::vector<StepRequest>& requests, std::size_t first,
                              std::size_t most) const {
  std::optional<std::int64_t> short_batch;
  std::size_t count = 0;
  while (count < most && first + count < requests.size()) {
    const std::int64_t samples = count_samples(requests[first + count].micro_batches);
    const bool is_short = samples < plan().batch_size;
    if (is_short && short_batch.value_or(samples) != samples) break;
    if (is_short) short_batch = samples;
    ++count;
  }
  return count;
}

std::vector<StepResult> Run::step_ahead(const std::vector<StepRequest>& requests, std::size_t first,
                                        std::size_t count, bool record) {
  std::vector<StepOrder> orders;
  for (std::size_t i = first; i < first + count; ++i) {
    orders.push_back(
        {.step = requests[i].step,
         .learning_rate = requests[i].learning_rate,
         .rate_factors = requests[i].rate_factors,
         .measurement = measurement_,
         .records = record,
         .longest_wait = options_.predicts_deadline ? step_deadline_.time() : Duration{0}});
  }
  std::vector<PoolStep> window;
  for (std::size_t i = 0; i < count; ++i) {
    const StepRequest& request = requests[first + i];
    window.push_back({orders[i], request.micro_batches, request.sample_ids});
  }
  const SteadyTime begin = std::chrono::steady_clock::now();
  std::vector<StepAnswer> answers = pool_.steps(window);
  const Duration wall = since(begin);
  step_deadline_.record(wall);
  limit_waits();
  std::vector<StepResult> results;
  for (StepAnswer& answer : answers) {
    std::vector<StepAnswer> of_step;
    of_step.push_back(std::move(answer));
    StepResult& result = results.emplace_back(join_answers(
        std::move(of_step), measurement_.gradient_squares ? model().layers.size() : 0));
    result.wall = wall / static_cast<std::int64_t>(count);
  }
  return results;
}

StepMeetings Run::meetings(bool caches) const {
  return {.clips = pool_.clips(), .commits = group_ != nullptr, .caches = caches};
}

std::vector<StepResult> Run::steps(const std::vector<StepRequest>& requests, bool record) {
  const StepMeetings met =
      meetings(std::any_of(requests.begin(), requests.end(),
                           [](const StepRequest& request) { return !request.sample_ids.empty(); }));
  const auto most = static_cast<std::size_t>(steps_of_window(plan(), met));
  const std::optional<std::string> in_step = explain_in_step(plan(), met);
  std::vector<StepResult> results;
  while (results.size() < requests.size()) {
    const std::size_t first = results.size();
    const std::size_t count = count_window(requests, first, most);
    if (count > 1) {
      for (StepResult& result : step_ahead(requests, first, count, record)) {
        results.push_back(std::move(result));
      }
      continue;
    }
    StepResult& result = results.emplace_back(step(requests[first], record));
    if (in_step && requests.size() > 1 && result.note.empty()) result.note = *in_step;
  }
  return results;
}

}  // namespace frazil
