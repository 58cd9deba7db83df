#include "analysis/svg/svg_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace frazil {
namespace {

constexpr std::size_t kShades = 4;

// How one kind is drawn. Kinds that mean the same to a reader share a class.
struct Look {
  const char* css_class;
  const char* word;
};

Look look_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
    case ActionKind::kPair:  // drawn as its halves
      return {"F", "F forward"};
    case ActionKind::kBackward:
      return {"B", "B backward"};
    case ActionKind::kBackwardInput:
      return {"I", "I backward of inputs"};
    case ActionKind::kBackwardWeight:
      return {"W", "W backward of weights"};
    case ActionKind::kRecompute:
      return {"R", "R recompute"};
    case ActionKind::kUpdate:
      return {"U", "U update"};
    case ActionKind::kReduceGradients:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
      return {"G", "REDUCE collective"};
    case ActionKind::kSendForward:
    case ActionKind::kReceiveForward:
    case ActionKind::kSendBackward:
    case ActionKind::kReceiveBackward:
      return {"S", "SEND / RECV"};
    case ActionKind::kBarrier:
    case ActionKind::kMove:
      return {"M", "MOVE / BARRIER"};
  }
  return {"M", "MOVE / BARRIER"};
}

bool belongs_to_stage(const Action& action) {
  return is_compute(action.kind) || action.kind == ActionKind::kRecompute;
}

std::string draw_box(double x, double y, double width, double height) {
  const std::string drawn = coordinate(std::max(width, 0.6));
  return fmt::format("<path d=\"M{} {}h{}v{}h-{}z\"/>", coordinate(x), coordinate(y), drawn,
                     coordinate(height), drawn);
}

std::string number_text(const Action& action) {
  if (!action.micro_batches) return "";
  const MicroBatches& range = *action.micro_batches;
  return range.count() > 1 ? fmt::format("{}-{}", range.first.value, range.last.value)
                           : fmt::format("{}", range.first.value);
}

// Returns the longest label that fits: "1:3F0" or "3F0" if stages are named, else "F0" or "0".
std::string fitting_label(const Action& action, bool names_stage, double width, double height) {
  if (height < 12) return "";
  std::vector<std::string> labels;
  const std::string number = number_text(action);
  const std::string kind(kind_name(action.kind));
  if (names_stage && belongs_to_stage(action)) {
    labels = {to_text(action), fmt::format("{}{}{}", action.stage.value, kind, number)};
  }
  labels.push_back(kind + number);
  labels.push_back(number);
  for (const std::string& label : labels) {
    if (text_width(label, 10.5) + 2 <= width) return label;
  }
  return "";
}

std::string class_of(const Action& action, std::size_t rank) {
  std::string name = look_of(action.kind).css_class;
  if (rank > 0) name += fmt::format(" c{}", std::min(rank, kShades - 1));
  return name;
}

std::string draw_action(const Action& action, DeviceId device, const DeviceStages& stages,
                        const Box& box) {
  const auto& [x, y, width, height] = box;
  std::string svg = fmt::format("<g class=\"{}\">", class_of(action, stages.rank(device, action)));
  svg += draw_box(x, y, width, height);
  const std::string label = fitting_label(action, stages.several(), width, height);
  if (!label.empty()) {
    svg += fmt::format("<text class=\"in\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                       coordinate(x + width / 2), coordinate(y + height / 2 + 3.8), label);
  }
  return svg + "</g>";
}

void collect_looks(const Action& action, std::vector<LegendEntry>& entries) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (const Action& half : pair->halves) collect_looks(half, entries);
    return;
  }
  const Look look = look_of(action.kind);
  const bool known = std::any_of(entries.begin(), entries.end(), [&look](const LegendEntry& entry) {
    return entry.css_class == look.css_class;
  });
  if (!known) entries.push_back({look.css_class, look.word});
}

void add_shades(const DeviceStages& stages, std::vector<LegendEntry>& entries) {
  static constexpr std::array<const char*, kShades> kWords = {
      "first stage of a device", "second stage", "third", "fourth and later"};
  for (std::size_t i = 0; i < std::min(stages.most(), kShades); ++i) {
    entries.push_back({i == 0 ? "N" : fmt::format("N c{}", i), kWords[i]});
  }
  entries.push_back({"", "3F0: stage 3, micro-batch 0"});
}

}  // namespace

DeviceStages::DeviceStages(const std::vector<TimelinePicture>& pictures) {
  for (const TimelinePicture& picture : pictures) {
    for (const Span& span : picture.timeline->spans) take(span.device, span.action);
  }
  for (const auto& [device, stages] : stages_) most_ = std::max(most_, stages.size());
}

void DeviceStages::take(DeviceId device, const Action& action) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (const Action& half : pair->halves) take(device, half);
  } else if (belongs_to_stage(action)) {
    stages_[device].emplace(action.pipeline, action.stage);
  }
}

std::size_t DeviceStages::rank(DeviceId device, const Action& action) const {
  const auto found = stages_.find(device);
  if (found == stages_.end() || !belongs_to_stage(action)) return 0;
  const auto stage = found->second.find({action.pipeline, action.stage});
  return static_cast<std::size_t>(std::distance(found->second.begin(), stage));
}

std::string device_name(const std::vector<std::string>& devices, DeviceId device) {
  return device.index() < devices.size() ? devices[device.index()]
                                         : fmt::format("device {}", device.value);
}

std::string draw_span(const Span& span, const DeviceStages& stages, const Box& box,
                      const std::string& what) {
  std::string svg = fmt::format("<g><title>{}</title>", escape_markup(what));
  const auto* pair = std::get_if<ActionPair>(&span.action.detail);
  if (pair == nullptr || pair->halves.empty()) {
    svg += draw_action(span.action, span.device, stages, box);
  } else {
    Box half = box;
    half.height /= static_cast<double>(pair->halves.size());
    for (const Action& action : pair->halves) {
      svg += draw_action(action, span.device, stages, half);
      half.y += half.height;
    }
  }
  return svg + "</g>\n";
}

std::vector<LegendEntry> list_kinds(const std::vector<TimelinePicture>& pictures,
                                    const DeviceStages& stages) {
  std::vector<LegendEntry> entries;
  for (const TimelinePicture& picture : pictures) {
    for (const Span& span : picture.timeline->spans) collect_looks(span.action, entries);
  }
  constexpr std::string_view kOrder = "FBIWRUGSM";
  std::sort(entries.begin(), entries.end(), [&](const LegendEntry& a, const LegendEntry& b) {
    return kOrder.find(a.css_class) < kOrder.find(b.css_class);
  });
  if (stages.several()) add_shades(stages, entries);
  return entries;
}

bool has_pairs(const std::vector<TimelinePicture>& pictures) {
  return std::any_of(pictures.begin(), pictures.end(), [](const TimelinePicture& picture) {
    const auto& spans = picture.timeline->spans;
    return std::any_of(spans.begin(), spans.end(), [](const Span& span) {
      return std::holds_alternative<ActionPair>(span.action.detail);
    });
  });
}

}  // namespace frazil
