#include "planner/reproduce/pipe_bd/pipe_bd_text.h"

#include <fmt/format.h>

#include <utility>

#include "planner/reproduce/pipe_bd/pipe_bd_verdicts.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

std::string percent(double simulated, double published) {
  return fmt::format("{:+.1f} %", 100 * (simulated / published - 1));
}

std::string list(const std::vector<int>& numbers) {
  return fmt::format("({})", fmt::join(numbers, ","));
}

std::string in_ms(Duration time) { return fmt::format("{:.1f}", to_ms(time)); }

std::string_view as_published(bool holds) { return holds ? "as published" : "NOT AS PUBLISHED"; }

std::string speedup_row(const SpeedupResult& result, std::size_t method,
                        const std::string& verdict) {
  const double published = result.published.thousandths[method] / 1000.0;
  const double plain = find_speedup(result, method);
  const auto spread = find_spread(result, method);
  const std::string drawn =
      spread ? fmt::format("{:.3f} ({:.3f} to {:.3f})", spread->median, spread->p10, spread->p90)
             : "does not vary";
  return fmt::format("{:<5}{:<10}{:<12}{:>10.3f}{:>11.3f}{:>10}  {:<23}  {}\n",
                     result.published.task, result.published.dataset,
                     method_name(kBlockwiseMethods[method]), published, plain,
                     percent(plain, published), drawn, verdict);
}

std::string speedups_text(const PipeBdResults& results) {
  std::string text =
      fmt::format("{:<5}{:<10}{:<12}{:>10}{:>11}{:>10}  {:<23}  {}\n", "task", "dataset", "method",
                  "published", "simulated", "error", "median (p10 to p90)", "verdict");
  for (const SpeedupResult& result : results.speedups) {
    const std::vector<SpeedupVerdict> verdicts = judge_speedups(result);
    for (std::size_t m = 0; m < kBlockwiseMethods.size(); ++m) {
      text += speedup_row(result, m, verdict_words(verdicts[m], result));
    }
  }
  for (const SpeedupResult& result : results.speedups) {
    if (result.open_load) text += explain_open_load(result) + "\n";
  }
  for (const SpeedupResult& result : results.speedups) {
    if (!result.bar) text += compare_order(result) + "\n";
  }
  const std::vector<std::string> missed = list_missed_speedups(results);
  for (const std::string& sentence : missed) text += sentence + "\n";
  return text + fmt::format("rows with a bar: {}\n\n", missed.empty()
                                                           ? "within it, or it is told what is open"
                                                           : as_published(false));
}

std::string own_plans_text(const PipeBdResults& results) {
  std::string text =
      "The fastest of all hybrid plans that fit 48 GB, by simulated step with its loaders; devices "
      "by stage, first blocks\n";
  for (const SpeedupResult& result : results.speedups) {
    const auto& [plan, step] = result.own;
    const double speedup =
        static_cast<double>(result.times.front().plain.count()) / static_cast<double>(step.count());
    text += fmt::format("{:<5}{:<10}{} at {}, {}, speed-up {:.3f}; AHD takes {} at {}\n",
                        result.published.task, result.published.dataset, list(plan.groups),
                        list(plan.cuts), to_text(step), speedup, list(result.distribution.groups),
                        list(result.distribution.cuts));
  }
  return text + "\n";
}

std::string epoch_row(const EpochResult& result) {
  const auto& [published, simulated] = result;
  const auto pair = [](int a, int b) {
    return fmt::format("{:>8.2f}{:>7.2f}", a / 100.0, b / 100.0);
  };
  return fmt::format("{:<14}{}{}{}{}\n", published.name, pair(published.load, simulated.load),
                     pair(published.teacher, simulated.teacher),
                     pair(published.student, simulated.student),
                     pair(published.idle, simulated.idle));
}

std::string epoch_text(const PipeBdResults& results) {
  std::string text =
      "Seconds of an epoch of NAS on CIFAR-10, published and simulated\n" +
      fmt::format("{:<14}{:>15}{:>15}{:>15}{:>15}\n", "", "load", "teacher", "student", "idle") +
      epoch_row(results.data_parallel);
  for (const EpochResult& rank : results.ranks) text += epoch_row(rank);
  return text + fmt::format("idle within 10 % of the period: {}\n\n",
                            results.idle_is_within_tenth ? "on every rank" : "NOT ON EVERY RANK");
}

std::string schedules_text(const PipeBdResults& results) {
  std::string text = "Schedules chosen for NAS on ImageNet: devices by stage, first blocks\n";
  for (std::size_t s = 0; s < results.schedules.size(); ++s) {
    const auto& [published, found, period, speedup] = results.schedules[s];
    text += fmt::format(
        "{:<14}published {} at {}; {} of the search {} at {}, {} ms; a step takes {}, speed-up "
        "{:.3f}\n",
        published.gpu, list(published.plan.groups), list(published.plan.cuts),
        s == 0 ? "best" : "second best", list(found.groups), list(found.cuts), in_ms(found.cost),
        to_text(period), speedup);
  }
  return text + fmt::format("schedules: {}\n\n", as_published(results.schedules_are_exact));
}

std::string varying_text(const VaryingResult& varying) {
  const auto& [options, barrier, decoupled] = varying;
  const auto row = [](std::string_view name, double known, double found) {
    return fmt::format("{:<16}{:>6.2f} {:>7.3f} {:>+7.2f} %\n", name, known, found,
                       100 * (found / known - 1));
  };
  return fmt::format(
             "Four stages of 15 to 25 ms, ms of a step, known and simulated: the mean of {} runs "
             "(seed {}) over steps {} to {};\nthe first {} steps of each run are left out, in "
             "which queues between decoupled stages fill\n",
             options.runs, options.seed, options.steps + 1, 2 * options.steps, options.steps) +
         row("with a barrier", kBarrierStepMs, barrier) +
         row("decoupled", kDecoupledStepMs, decoupled) +
         fmt::format("within 0.2 %: {}\n\n", is_as_known(varying) ? "both" : "NOT BOTH");
}

constexpr std::string_view kTitle =
    "Speed-up over data parallel (Pipe-BD, Jang et al. 2023), published and simulated\n"
    "NAS: neural architecture search, MC: model compression; DP: data parallel; LS: layerwise "
    "scheduling, blocks dealt to\n"
    "devices; TR: teacher relaying; DPU: decoupled parameter update, no barrier; AHD: automatic "
    "hybrid distribution\n";

constexpr std::string_view kAssumptions =
    "NAS is simulated from the published block times (ImageNet) and epoch shares (CIFAR-10); the "
    "teacher's part on ImageNet\n"
    "is that of the CIFAR-10 epoch. Loaders share the workers of their host by max-min fair "
    "rates: DP and LS load each batch\n"
    "once per block, TR once. On CIFAR-10 loading is the published wait of devices; on ImageNet "
    "one loader alone takes\n"
    "21.823 ms for a batch, fitted on TR+DPU. LS gives no such constant: it loads as often as DP, "
    "so no one time makes it\n"
    "slower. All-reduces and relays are not published and take no time here.\n"
    "MC is our own workload of the published shape, not a reproduction: VGG-16 and its depthwise "
    "separable student in 13\n"
    "blocks, batch 256, 5,000 multiply-adds per ns, 5 us per kernel.\n";

}  // namespace

std::vector<std::string> list_missed_speedups(const PipeBdResults& results) {
  std::vector<std::string> sentences;
  for (const SpeedupResult& result : results.speedups) {
    for (std::string& sentence : explain_misses(result)) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::string pipe_bd_text(const PipeBdResults& results) {
  std::string text(kTitle);
  text += fmt::format(
      "median (p10 to p90): of {} runs (seed {}) in which each student's time is drawn from "
      "+-{} %, as paths are sampled\n",
      kPathDraws.runs, kPathDraws.seed, kPathDraws.amplitude_ppm / 10'000);
  text += speedups_text(results) + own_plans_text(results) + epoch_text(results) +
          schedules_text(results) + varying_text(results.varying);
  text += kAssumptions;
  return text;
}

}  // namespace frazil
