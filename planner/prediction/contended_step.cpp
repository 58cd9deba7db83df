#include "planner/prediction/contended_step.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "profiles/quantity_text.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

std::string name_rules(const ContentionOptions& options) {
  std::string text;
  const auto add = [&](const std::string& rule) { text += (text.empty() ? "" : ", ") + rule; };
  if (options.share_links) add("links shared");
  if (options.block_sends) add("sends blocking");
  if (options.buffers) {
    add(*options.buffers == 0
            ? "rendezvous"
            : fmt::format("{} buffer{}", *options.buffers, *options.buffers == 1 ? "" : "s"));
  }
  if (options.wait_for_memory) add("tasks waiting for memory");
  return text;
}

}  // namespace

ContendedStep simulate_contended(const LoweredStep& step, Setting setting,
                                 const ContentionOptions& options) {
  const Cluster& cluster = setting.cluster();
  EventOptions events;
  events.meetings = find_meetings(step.graph);
  if (options.share_links) {
    events.sharing = share(step.graph, cluster, find_capacities(cluster));
  }
  events.messages = {.block_sender = options.block_sends, .buffers = options.buffers};
  if (options.wait_for_memory) {
    for (const Device& device : cluster.devices) {
      events.memory_limits.push_back(device.memory_limit);
    }
  }
  const EventGraph graph = prepare_events(step.graph, events);
  const Prices prices = price_all(step.graph, setting);
  const auto name_of = [&](TaskId task) {
    const DeviceId device = step.graph.lanes()[step.graph.lane_of()[task]].device;
    return fmt::format("{} on device {}", to_text(step.actions[task]), device.value);
  };
  EventTimes times;
  run_events(graph, prices.of_work, times, {}, name_of);
  ContendedStep contended{latest_end(times), {}};
  if (options.jitter) {
    contended.spread = find_spread(draw_makespans(graph, prices.of_work, *options.jitter));
  }
  return contended;
}

std::string print_contended(const ContendedStep& step, const ContentionOptions& options) {
  std::string text;
  if (const std::string rules = name_rules(options); !rules.empty()) {
    text = fmt::format("makespan     {} with {}\n", to_text(step.makespan), rules);
  }
  if (step.spread) {
    text +=
        fmt::format("with jitter  {} median, {} to {} (p10 to p90 of {} draws, +-{} %, seed {})\n",
                    to_text(step.spread->median), to_text(step.spread->p10),
                    to_text(step.spread->p90), options.jitter->draws,
                    static_cast<double>(options.jitter->amplitude_ppm) / 1e4, options.jitter->seed);
  }
  return text;
}

std::string contended_json(const ContendedStep& step, const ContentionOptions& options) {
  nlohmann::ordered_json json = {{"contended_makespan_ns", step.makespan.count()}};
  if (step.spread) {
    json["jitter"] = {{"draws", options.jitter->draws},
                      {"amplitude_ppm", options.jitter->amplitude_ppm},
                      {"seed", options.jitter->seed},
                      {"p10_ns", step.spread->p10.count()},
                      {"median_ns", step.spread->median.count()},
                      {"p90_ns", step.spread->p90.count()}};
  }
  return json.dump();
}

}  // namespace frazil
