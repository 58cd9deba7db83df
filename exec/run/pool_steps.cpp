// The part of the pool (exec/run/device_pool.h) that runs steps: one that all devices end together,
// or a window of steps in which each device goes on by itself.
#include "exec/run/device_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "exec/measuring/allocation_meter.h"
#include "exec/run/pool_program.h"
#include "profiles/error.h"

namespace frazil {

// Two programs are held at most, that of whole batches and that of the short batch seen last.
DevicePool::Program& DevicePool::program_of(const PoolStep& step) {
  Program& program = program_for(count_samples(step.micro_batches));
  ENSURE(step.micro_batches.size() == static_cast<std::size_t>(program.step.plan.micro_batches()),
         "as many micro-batches as the plan has");
  return program;
}

void DevicePool::begin_commit(const PoolStep& step, const Plan& plan) {
  if (!commits(plan)) return;
  const std::vector<DeviceId> voting = voters();
  commit_->begin(step.order.step, static_cast<int>(std::count_if(
                                      voting.begin(), voting.end(),
                                      [this](DeviceId device) { return place_.is_here(device); })));
}

StepInput DevicePool::input_of(const PoolStep& step, int steps_before,
                               UpdateCounts* updates) const {
  const StepOrder& order = step.order;
  return {.step = order.step,
          .seed = seed_,
          .learning_rate = order.learning_rate,
          .micro_batches = &step.micro_batches,
          .samples = count_samples(step.micro_batches),
          .rate_factors = order.rate_factors,
          .cache = order.uses_cache ? cache_ : nullptr,
          .sample_ids = &step.sample_ids,
          .updates = updates,
          .steps_before = steps_before};
}

// Where a device is, is asked by the thread that waits for all of them.
void DevicePool::run_window(const std::vector<PoolStep>& window,
                            const std::vector<Program*>& programs, StepParts& parts) {
  const auto book = measurement_.memory ? std::make_shared<AllocationMeter::Book>() : nullptr;
  const bool tells_reads = program().plan.steps_ahead > 0;
  std::vector<UpdateCounts> updates(states_.size());
  std::vector<std::atomic<std::size_t>> at(states_.size());
  const auto run_step = [&](std::size_t d, std::size_t step) {
    Executor& executor = *programs[step]->executors[d];
    std::optional<AllocationMeter> meter;
    if (book) meter.emplace(book);
    std::vector<LossSample> losses = executor.run_step(
        input_of(window[step], static_cast<int>(step), tells_reads ? &updates[d] : nullptr));
    StepPart& part = parts[step][d];
    part = take_part(recorders_[d], meter ? Bytes{meter->peak_bytes()} : Bytes{});
    part.losses = std::move(losses);
    part.non_finite = executor.non_finite();
  };
  run_job(
      [&](DeviceId device) {
        const std::size_t d = local(device);
        for (std::size_t step = 0; step < window.size(); ++step) {
          at[d].store(step, std::memory_order_relaxed);
          run_step(d, step);
        }
      },
      [&](DeviceId device) {
        const std::size_t d = local(device);
        return programs[at[d].load(std::memory_order_relaxed)]->executors[d]->place();
      });
}

std::vector<StepAnswer> DevicePool::steps(const std::vector<PoolStep>& window) {
  refuse_after_failure();
  const StepOrder& first = window.front().order;
  if (first.longest_wait > Duration{0}) limit_waits(first.longest_wait);
  measurement_ = first.measurement;
  std::vector<Program*> programs;
  for (const PoolStep& step : window) {
    const StepOrder& order = step.order;
    ENSURE(order.rate_factors.empty() || order.rate_factors.size() == model_.blocks.size(),
           "a factor for every block");
    ENSURE(!order.uses_cache || step.sample_ids.size() ==
                                    static_cast<std::size_t>(count_samples(step.micro_batches)),
           "a number for every sample");
    ENSURE(order.measurement == measurement_, "a window measures the same in all its steps");
    programs.push_back(&program_of(step));
    const bool is_alone = window.size() == 1;
    ENSURE(is_alone || (!order.uses_cache && !clips() && !commits(programs.back()->step.plan)),
           "devices meet in no step of a window");
  }
  // A short batch of another size would have taken the place of the program of one before.
  for (const Program* program : programs) {
    ENSURE(program == full_.get() || program == short_.get(), "short batches of one size");
  }
  begin_commit(window.front(), programs.front()->step.plan);
  StepParts parts(window.size(), std::vector<StepPart>(states_.size()));
  run_window(window, programs, parts);
  std::vector<StepAnswer> answers;
  for (std::size_t step = 0; step < window.size(); ++step) {
    StepAnswer& answer =
        answers.emplace_back(join_parts(std::move(parts[step]), window[step].order.records));
    answer.note = programs[step]->note;
    if (window[step].order.uses_cache && cache_ != nullptr) answer.cache = tally();
    answer.zero = std::chrono::duration_cast<Duration>(zero_.time_since_epoch());
  }
  return answers;
}

StepAnswer DevicePool::step(const StepOrder& order, const std::vector<Samples>& micro_batches,
                            const std::vector<std::int64_t>& sample_ids) {
  const std::vector<PoolStep> alone{PoolStep{order, micro_batches, sample_ids}};
  return std::move(steps(alone).front());
}

}  // namespace frazil
