#include "planner/transitions/fill_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "profiles/error.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

Duration scale(Duration duration, std::int64_t times, std::int64_t of) {
  return Duration{static_cast<Duration::rep>(static_cast<Wide>(duration.count()) * times / of)};
}

std::int64_t count_room(const FillQuestion& question, FeatureTier tier) {
  const Bytes limit = question.store.tier(tier).limit;
  return std::min(question.store.samples, limit.count / question.of_sample.count);
}

struct Kept {
  std::int64_t in_memory = 0;
  std::int64_t on_disk = 0;
};

// Returns the time to read the samples kept, which is also the time to write them.
Duration transfer_time(const FillQuestion& question, Kept kept) {
  Duration time{0};
  const auto add = [&](const CacheTier& tier, std::int64_t samples) {
    if (samples == 0) return;
    time += transfer_time(tier, question.of_sample, samples, question.micro_batches);
  };
  add(question.store.memory, kept.in_memory);
  add(question.store.disk, kept.on_disk);
  return time;
}

// Returns the work of an epoch.
Duration find_work(const FillQuestion& question, std::int64_t kept) {
  const std::int64_t all = question.store.samples;
  if (kept == all) return question.reads * question.epoch;
  const Duration saved = std::max(Duration{0}, question.fills - question.reads);
  const Duration fixed = std::min(question.fixed, saved);
  return (question.reads + fixed) * question.epoch +
         scale((saved - fixed) * question.epoch, all - kept, all);
}

// Returns what an epoch takes of which so many of the samples kept are missing, over one of which
// none is. They are computed and written.
Duration find_excess(const FillQuestion& question, std::int64_t kept, std::int64_t missing,
                     Duration reading, Duration none_missing) {
  const Duration work = find_work(question, kept - missing);
  const Duration reads = scale(reading, kept - missing, kept);
  return std::max(work, reads) + scale(reading, missing, kept) - none_missing;
}

// Returns what the steps after the filling epoch take because other caches have the samples.
Duration find_warming(const FillQuestion& question, std::int64_t kept, Duration reading,
                      Duration none_missing) {
  constexpr int kFraction = 20;  // bits
  Duration warming{0};
  Wide expected = static_cast<Wide>(kept) << kFraction;
  for (Step left = question.steps - question.epoch; left > 0; left -= question.epoch) {
    expected = expected * (question.caches - 1) / question.caches;
    const auto missing =
        static_cast<std::int64_t>((expected + (1 << (kFraction - 1))) >> kFraction);
    if (missing == 0) break;
    warming += scale(find_excess(question, kept, missing, reading, none_missing),
                     std::min(left, question.epoch), question.epoch);
  }
  return warming;
}

FillChoice price(const FillQuestion& question, Kept kept) {
  FillChoice choice{.in_memory = kept.in_memory, .on_disk = kept.on_disk};
  choice.reading = transfer_time(question, kept);
  choice.without = question.without * question.steps;
  choice.fill = question.fills * question.epoch + choice.reading;
  const Step rest = question.steps - question.epoch;
  const Duration work = find_work(question, kept.in_memory + kept.on_disk);
  const Duration reads = std::max(work, choice.reading);
  const Duration warming =
      find_warming(question, kept.in_memory + kept.on_disk, choice.reading, reads);
  choice.total = choice.fill + scale(reads, rest, question.epoch) + warming;
  const Duration missing = choice.fill + warming - question.without * question.epoch;
  if (missing <= Duration{0}) {
    choice.break_even = question.epoch;
  } else if (const Duration saved = question.without * question.epoch - reads;
             saved > Duration{0}) {
    const Wide steps = static_cast<Wide>(missing.count()) * question.epoch;
    const auto more = static_cast<Step>(divide_up(steps, Wide{saved.count()}));
    choice.break_even = question.epoch + more;
  }
  return choice;
}

}  // namespace

FillChoice price_fill(const FillQuestion& question, std::int64_t in_memory, std::int64_t on_disk) {
  ENSURE(question.steps > question.epoch, "some step reads");
  ENSURE(in_memory <= count_room(question, FeatureTier::kMemory) &&
             on_disk <= count_room(question, FeatureTier::kDisk) &&
             in_memory + on_disk <= question.store.samples,
         "room for the samples");
  return price(question, {in_memory, on_disk});
}

FillChoice choose_fill(const FillQuestion& question) {
  ENSURE(question.of_sample.count > 0 && question.store.samples > 0 && question.epoch > 0,
         "samples with features");
  FillChoice best{.total = question.without * question.steps,
                  .without = question.without * question.steps};
  if (question.steps <= question.epoch) return best;
  const std::int64_t memory = count_room(question, FeatureTier::kMemory);
  const std::int64_t disk = count_room(question, FeatureTier::kDisk);
  const auto consider = [&](Kept kept) {
    const FillChoice choice = price(question, kept);
    const bool is_first = best.samples() == 0;
    if (!is_first && choice.total > best.total) return;
    if (is_first || choice.total < best.total || choice.samples() < best.samples()) best = choice;
  };
  // Considers one to `most` samples in that tier; on disk they come on top of `in_memory` samples.
  const auto consider_row = [&](std::int64_t in_memory, FeatureTier tier, std::int64_t most) {
    if (most <= 0) return;
    const auto keep = [&](std::int64_t more) {
      return tier == FeatureTier::kMemory ? Kept{more, 0} : Kept{in_memory, more};
    };
    const auto is_bound_by_reading = [&](std::int64_t more) {
      return transfer_time(question, keep(more)) >= find_work(question, in_memory + more);
    };
    // The last number is considered apart: once all samples are kept, no micro-batch runs the
    // prefix.
    std::int64_t first = 1;
    std::int64_t end = most;
    while (first < end) {
      const std::int64_t middle = first + (end - first) / 2;
      if (is_bound_by_reading(middle)) {
        end = middle;
      } else {
        first = middle + 1;
      }
    }
    for (const std::int64_t more : {std::int64_t{1}, first - 1, first, most - 1, most}) {
      if (more >= 1 && more <= most) consider(keep(more));
    }
  };
  consider_row(0, FeatureTier::kMemory, memory);
  consider_row(0, FeatureTier::kDisk, disk);
  consider_row(memory, FeatureTier::kDisk,
               memory == 0 ? 0 : std::min(disk, question.store.samples - memory));
  return best;
}

std::string explain(const FillQuestion& question, const FillChoice& choice) {
  if (choice.samples() == 0) {
    if (question.steps <= question.epoch) {
      return fmt::format("an epoch of {} steps fills, and {} are left", question.epoch,
                         question.steps);
    }
    return fmt::format("no tier has room for a sample's {} bytes", question.of_sample.count);
  }
  const std::string kept =
      fmt::format("{} of {} samples{}", choice.samples(), question.store.samples,
                  question.caches == 1
                      ? ""
                      : fmt::format(" in each of {} caches that share nothing", question.caches));
  if (!choice.pays()) {
    return fmt::format("with {} the {} steps left take {:.3f} ms, without {:.3f} ms", kept,
                       question.steps, to_ms(choice.total), to_ms(choice.without));
  }
  return fmt::format("{} pay after {} of {} steps and save {:.3f} ms", kept, *choice.break_even,
                     question.steps, to_ms(choice.without - choice.total));
}

}  // namespace frazil
