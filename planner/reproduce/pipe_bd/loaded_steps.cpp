#include "planner/reproduce/pipe_bd/loaded_steps.h"

#include <algorithm>
#include <variant>

#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

bool is_joint(const Work& work) {
  const auto* const collective = std::get_if<Collective>(&work);
  return collective != nullptr && collective->devices.size() > 1;
}

// Lists the times of the students that a task trains.
std::vector<Duration> list_students(const Work& work, const ModelProfile& model) {
  std::vector<Duration> students;
  const auto* const compute = std::get_if<Compute>(&work);
  if (compute == nullptr) return students;
  for (const LayerWork& part : compute->parts) {
    if (part.part != LayerPart::kBackwardWeightAlone) continue;
    const Layer& layer = model.layers[part.layer.index()];
    students.push_back(cost_at(layer, compute->micro_batch_size).cost.backward_weight_alone);
  }
  return students;
}

// Finds the first and the last task of each device's compute lane.
std::map<DeviceId, std::pair<TaskId, TaskId>> find_compute(const TaskGraph& graph) {
  std::map<DeviceId, std::pair<TaskId, TaskId>> found;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskLane& lane = graph.lanes()[graph.lane_of()[task]];
    if (lane.lane != Lane::kCompute) continue;
    found.try_emplace(lane.device, task, task).first->second.second = task;
  }
  return found;
}

DeviceId shifted(DeviceId device, DeviceId first) { return DeviceId{first.value + device.value}; }

}  // namespace

PricedStep price_step(const Workload& workload, bool barrier) {
  const auto& [model, cluster, plan] = workload;
  const StepOptions options{.clip = barrier, .overlap = std::nullopt, .commit_round = false};
  PricedStep step{.graph = simulate_step(plan, {model, cluster}, options).lowered.graph,
                  .costs = {},
                  .load_for = plan.pipelines.front().stages.front().devices};
  const Prices prices = price_all(step.graph, {model, cluster});
  for (const Dependency& dependency : step.graph.dependencies()) {
    ENSURE(dependency.delay == kNoWork || prices.of_work[dependency.delay] == kNoTime,
           "messages that arrive at once");
  }
  for (const WorkId work : step.graph.work_of()) {
    step.costs.push_back({prices.of_work[work], list_students(step.graph.works()[work], model)});
  }
  return step;
}

LoadedSteps::LoadedSteps(const Loader& loader) : loader_(loader) {
  if (loader.alone > kNoTime) pool_.push_back(sharing_.add_resource(loader.capacity));
}

void LoadedSteps::append(const PricedStep& step, int steps, DeviceId first) {
  ENSURE(steps >= 1, "at least one step");
  std::map<WorkId, WorkId> collectives;
  for (int s = 0; s < steps; ++s) append_once(step, first, collectives);
  ENSURE(first.value == 0 || collectives.empty(), "devices that reduce together keep their places");
}

void LoadedSteps::append_once(const PricedStep& step, DeviceId first,
                              std::map<WorkId, WorkId>& collectives) {
  const std::map<DeviceId, TaskId> loads = append_loads(step, first);
  const auto offset = static_cast<TaskId>(graph_.size());
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    const TaskLane& from = step.graph.lanes()[step.graph.lane_of()[task]];
    graph_.add_task(lane(shifted(from.device, first), from.lane),
                    add_task_work(step, task, collectives));
  }
  for (const Dependency& dependency : step.graph.dependencies()) {
    graph_.add_dependency(offset + dependency.task, offset + dependency.on);
  }
  const auto compute = find_compute(step.graph);
  for (const DeviceId device : step.load_for) {
    const auto [begin, end] = compute.at(device);
    const DeviceId here = shifted(device, first);
    last_of_step_[here].push_back(offset + end);
    if (const auto load = loads.find(here); load != loads.end()) {
      graph_.add_dependency(offset + begin, load->second);
    }
  }
  step_ends_.push_back(static_cast<TaskId>(graph_.size()));
}

std::map<DeviceId, TaskId> LoadedSteps::append_loads(const PricedStep& step, DeviceId first) {
  std::map<DeviceId, TaskId> loads;
  if (pool_.empty()) return loads;
  const auto loaders = static_cast<std::int64_t>(step.load_for.size());
  for (const DeviceId device : step.load_for) {
    const DeviceId here = shifted(device, first);
    const WorkId work = add_work(Fixed{}, loader_.alone / loaders);
    sharing_.draw(work, loader_.rate, pool_);
    const auto [lane, is_new] = loader_lanes_.try_emplace(here, kNoLane);
    if (is_new) lane->second = graph_.add_lane(here, Lane::kHost);
    const TaskId task = graph_.add_task(lane->second, work);
    const std::vector<TaskId>& done = last_of_step_[here];
    const auto ahead = static_cast<std::size_t>(loader_.ahead);
    if (done.size() > ahead) graph_.add_dependency(task, done[done.size() - 1 - ahead]);
    loads[here] = task;
    last_load_[here] = task;
  }
  return loads;
}

// Returns the work of a copied task. Tasks that devices enter together keep one work over all
// steps, by which the engine finds them; every other task has a work of its own, whose price may be
// drawn.
WorkId LoadedSteps::add_task_work(const PricedStep& step, TaskId task,
                                  std::map<WorkId, WorkId>& collectives) {
  const PricedStep::Cost& cost = step.costs[task];
  const WorkId from = step.graph.work_of()[task];
  const Work& work = step.graph.works()[from];
  if (is_joint(work)) {
    const auto [known, is_new] = collectives.try_emplace(from, kNoWork);
    if (is_new) known->second = add_work(work, cost.time);
    return known->second;
  }
  const WorkId own = add_work(Fixed{}, cost.time);
  for (const Duration part : cost.drawn) drawn_.push_back({own, part});
  return own;
}

WorkId LoadedSteps::add_work(Work work, Duration price) {
  prices_.push_back(price);
  return graph_.add_work(std::move(work));
}

LaneId LoadedSteps::lane(DeviceId device, Lane kind) {
  const auto [known, is_new] = lanes_.try_emplace({device, kind}, kNoLane);
  if (is_new) known->second = graph_.add_lane(device, kind);
  return known->second;
}

EventGraph LoadedSteps::prepare() const {
  EventOptions options;
  options.sharing = sharing_;
  options.meetings = find_meetings(graph_);
  return prepare_events(graph_, std::move(options));
}

void LoadedSteps::simulate(const std::function<void(const EventTimes&)>& visit) const {
  EventTimes times;
  run_events(prepare(), prices_, times);
  ENSURE(!times.rounded, "rates that are small fractions");
  visit(times);
}

void LoadedSteps::simulate(const StudentDraws& draws,
                           const std::function<void(const EventTimes&)>& visit) const {
  const EventGraph prepared = prepare();
  EventTimes times;
  for (int run = 0; run < draws.runs; ++run) {
    const NoisyPrices noisy({.seed = draws.seed,
                             .draw = static_cast<std::uint32_t>(run),
                             .amplitude_ppm = draws.amplitude_ppm});
    std::vector<Duration> prices = prices_;
    TaskId part = 0;
    for (const auto& [work, time] : drawn_) {
      prices[work] += Duration{noisy(time.count(), part++)} - time;
    }
    run_events(prepared, prices, times);
    ENSURE(!times.rounded, "rates that are small fractions");
    visit(times);
  }
}

Duration LoadedSteps::find_period(const EventTimes& times) const {
  ENSURE(step_ends_.size() >= 2 && step_ends_.size() % 2 == 0, "two halves of steps");
  const std::size_t half = step_ends_.size() / 2;
  std::int64_t middle = 0;
  for (TaskId task = 0; task < step_ends_[half - 1]; ++task) {
    middle = std::max(middle, times.of[task].end);
  }
  return (latest_end(times) - Duration{middle}) / static_cast<std::int64_t>(half);
}

Duration LoadedSteps::find_end() const {
  Duration end{0};
  simulate([&](const EventTimes& times) { end = latest_end(times); });
  return end;
}

std::vector<Duration> LoadedSteps::draw_ends(const StudentDraws& draws) const {
  std::vector<Duration> ends;
  simulate(draws, [&](const EventTimes& times) { ends.push_back(latest_end(times)); });
  return ends;
}

Duration LoadedSteps::find_period() const {
  Duration period{0};
  simulate([&](const EventTimes& times) { period = find_period(times); });
  return period;
}

std::vector<Duration> LoadedSteps::draw_periods(const StudentDraws& draws) const {
  std::vector<Duration> periods;
  simulate(draws, [&](const EventTimes& times) { periods.push_back(find_period(times)); });
  return periods;
}

Duration LoadedSteps::find_load_time(DeviceId device) const {
  if (pool_.empty()) return kNoTime;
  Duration taken{0};
  simulate([&](const EventTimes& times) {
    const TaskTimes& load = times.of[last_load_.at(device)];
    taken = Duration{load.end - load.start};
  });
  return taken;
}

}  // namespace frazil
