#include "exec/train/earlier_log.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <system_error>
#include <utility>

#include "exec/disk/file_system.h"
#include "exec/disk/kept_aside.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Events = std::vector<FreezeEvent>;

// True if an event belongs before step `first`. Events hold before their step, except evaluations
// and checkpoints, which tell of what lies before it.
bool is_before(const FreezeEvent& event, Step first) {
  const bool looks_back = std::holds_alternative<EvalEvent>(event.what) ||
                          std::holds_alternative<CheckpointEvent>(event.what);
  return event.step < first || (event.step == first && looks_back);
}

// Returns how many of the steps up to `end` are not there; none if one is there twice.
std::optional<std::size_t> count_missing(const Events& events, Step end) {
  Step next = 0;
  std::size_t missing = 0;
  for (const FreezeEvent& event : events) {
    if (!std::holds_alternative<StepEvent>(event.what)) continue;
    if (event.step < next) return std::nullopt;
    missing += static_cast<std::size_t>(event.step - next);
    next = event.step + 1;
  }
  return missing + static_cast<std::size_t>(end - next);
}

bool is_of_run(const FreezeTrace& log, const FreezeTrace& header) {
  return log.model_hash == header.model_hash && log.steps <= header.steps;
}

std::optional<FreezeTrace> parse(const std::string& text, const fs::path& path) {
  try {
    return parse_freeze_trace(text, path.string());
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Takes a line with its end off the front of a text that is not empty.
std::string take_line(std::string_view& text) {
  std::string line(text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1));
  text.remove_prefix(line.size());
  return line;
}

// Keeps the most events whose steps do not decrease: a damaged number is alone with what it says.
void keep_ordered(Events& events) {
  std::vector<std::size_t> ends;  // by length less one: the last event of a chain, the lowest step
  std::vector<std::size_t> before(events.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto place =
        std::upper_bound(ends.begin(), ends.end(), events[i].step,
                         [&](Step step, std::size_t end) { return step < events[end].step; });
    if (place != ends.begin()) before[i] = *(place - 1);
    if (place == ends.end()) {
      ends.push_back(i);
    } else {
      *place = i;
    }
  }
  Events kept;
  for (std::size_t i = ends.empty() ? events.size() : ends.back(); i < events.size();
       i = before[i]) {
    kept.push_back(events[i]);
  }
  std::reverse(kept.begin(), kept.end());
  events = std::move(kept);
}

void drop_second_steps(Events& events) {
  Step last = -1;
  std::erase_if(events, [&last](const FreezeEvent& event) {
    if (!std::holds_alternative<StepEvent>(event.what)) return false;
    const bool is_second = event.step == last;
    last = event.step;
    return is_second;
  });
}

// Returns how many masks of the log are others than were in force, and puts these in their place.
std::size_t correct_masks(const Events& masks, Events& events) {
  std::size_t others = 0;
  for (FreezeEvent& event : events) {
    auto* const told = std::get_if<MaskEvent>(&event.what);
    if (told == nullptr) continue;
    const auto later = std::find_if(masks.begin(), masks.end(), [&](const FreezeEvent& mask) {
      return mask.step > event.step;
    });
    if (later == masks.begin()) continue;
    const FreezeMask& mask = std::get<MaskEvent>((later - 1)->what).mask;
    others += told->mask != mask ? 1 : 0;
    told->mask = mask;
  }
  return others;
}

void restore_masks(const Events& masks, Events& events) {
  for (const FreezeEvent& mask : masks) {
    const auto is_at = [&](const FreezeEvent& event) {
      return event.step == mask.step && std::holds_alternative<MaskEvent>(event.what);
    };
    if (std::any_of(events.begin(), events.end(), is_at)) continue;
    // Of one step, the mask comes behind what looks back.
    const auto place = std::find_if(events.begin(), events.end(), [&](const FreezeEvent& event) {
      return event.step >= mask.step && !is_before(event, mask.step);
    });
    events.insert(place, mask);
  }
}

// A plan begins where the mask changes, and where there is a transition. One whose line was damaged
// has its file still.
void restore_plans(const Events& masks, Events& events) {
  const auto add_at = [&events](Step step) {
    const auto is_plan = [step](const FreezeEvent& event) {
      return event.step == step && std::holds_alternative<PlanEvent>(event.what);
    };
    if (std::any_of(events.begin(), events.end(), is_plan)) return;
    const auto place = std::find_if(events.begin(), events.end(), [step](const FreezeEvent& event) {
      const bool is_behind = std::holds_alternative<TransitionEvent>(event.what) ||
                             std::holds_alternative<StepEvent>(event.what);
      return event.step > step || (event.step == step && is_behind);
    });
    events.insert(place, {step, PlanEvent{"", "a plan whose line was damaged"}});
  };
  for (const FreezeEvent& mask : masks) add_at(mask.step);
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (std::holds_alternative<TransitionEvent>(events[i].what)) add_at(events[i].step);
  }
  std::size_t number = 0;
  for (FreezeEvent& event : events) {
    auto* const plan = std::get_if<PlanEvent>(&event.what);
    if (plan == nullptr) continue;
    if (plan->plan.empty()) plan->plan = "phase-" + std::to_string(number) + "/plan.json";
    ++number;
  }
}

// Returns the lines that can be read, each by itself under the header of this run.
EarlierLog read_lines(const std::string& text, const fs::path& path, const FreezeTrace& header) {
  FreezeTrace expected = header;
  expected.open = true;
  expected.events.clear();
  EarlierLog earlier{.log = expected};
  const std::string first = header_line(expected);
  // One line at a time: a list of them would be many times a file of short ones.
  std::string_view rest = text;
  const auto own = rest.empty() ? std::nullopt : parse(take_line(rest), path);
  if (own) earlier.log.provenance = own->provenance;
  if (!own || !is_of_run(*own, header)) ++earlier.lost_lines;
  while (!rest.empty()) {
    if (const auto one = parse(first + take_line(rest), path)) {
      Events& events = earlier.log.events;
      events.insert(events.end(), one->events.begin(), one->events.end());
    } else {
      ++earlier.lost_lines;
    }
  }
  const std::size_t readable = earlier.log.events.size();
  keep_ordered(earlier.log.events);
  drop_second_steps(earlier.log.events);
  earlier.lost_lines += readable - earlier.log.events.size();
  return earlier;
}

int count_flipped(const std::string& here, const std::string& there) {
  int flipped = 0;
  for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
    flipped += std::popcount(static_cast<unsigned char>(here[i] ^ there[i]));
  }
  return flipped;
}

// True if one flipped bit makes `told` of a number from `least` to `most`.
bool may_have_been(Step told, Step least, Step most) {
  for (std::size_t bit = 0; bit < 8 * std::to_string(told).size(); ++bit) {
    std::string digits = std::to_string(told);
    digits[bit / 8] = static_cast<char>(digits[bit / 8] ^ (1 << bit % 8));
    if (digits.find_first_not_of("0123456789") != std::string::npos) continue;
    const Step length = std::stoll(digits);
    if (length >= least && length <= most) return true;
  }
  return false;
}

// True if the first line is that of another run, rather than one with a flipped bit. The run, which
// has done `first` steps, may have been given more of them than it had when the line was written.
bool is_of_other_run(const std::string& text, const fs::path& path, const FreezeTrace& header,
                     Step first) {
  const auto own = parse(text.substr(0, text.find('\n') + 1), path);
  if (!own || is_of_run(*own, header)) return false;
  if (own->model_hash == header.model_hash) return !may_have_been(own->steps, first, header.steps);
  return own->steps > header.steps || own->model_hash.size() != header.model_hash.size() ||
         count_flipped(own->model_hash, header.model_hash) != 1;
}

}  // namespace

std::optional<EarlierLog> read_earlier_log(const fs::path& path, const FreezeTrace& header,
                                           Step first, const Events& masks) {
  std::string text;
  try {
    text = read_file(real_file_system(), path);
  } catch (const InputError&) {
    return std::nullopt;
  }
  const std::size_t torn = text.size() - (text.rfind('\n') + 1);  // npos + 1 is 0
  text.resize(text.size() - torn);
  if (is_of_other_run(text, path, header, first)) return std::nullopt;
  const auto drop_later = [first](Events& events) {
    std::erase_if(events, [&](const FreezeEvent& event) { return !is_before(event, first); });
  };
  if (auto whole = parse(text, path); whole && is_of_run(*whole, header)) {
    drop_later(whole->events);
    if (count_missing(whole->events, first) == 0) {
      const std::size_t others = correct_masks(masks, whole->events);
      return EarlierLog{std::move(*whole), others};
    }
  }
  EarlierLog earlier = read_lines(text, path, header);
  Events& events = earlier.log.events;
  drop_later(events);
  // The end of a line may have been damaged, too, and two lines be one, or the last be none.
  const auto missing = count_missing(events, first);
  if (missing && *missing > 0 && torn > 0) ++earlier.lost_lines;
  if (!missing || *missing > 2 * earlier.lost_lines) return std::nullopt;
  if (earlier.lost_lines > 0) {
    earlier.lost_lines += correct_masks(masks, events);
    restore_masks(masks, events);
    restore_plans(masks, events);
  }
  return earlier;
}

std::string keep_copy(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(path, error))) return "";
  const FileSystem files = real_file_system();
  return keep_copy_aside(files, fs::absolute(path), read_file(files, path));
}

}  // namespace frazil
