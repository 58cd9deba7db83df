#include "planner/what_if/what_if_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kLargestFactor = 1'000'000;
constexpr std::string_view kForms =
    "device N xF, straggler N +P%, link N>M xF, link N>M latency xF, link N>M transfer xF or "
    "layer N xF";
constexpr std::string_view kFactors =
    "a factor such as x1.5, up to x1000000, with at most nine decimal places";
constexpr std::string_view kPercents =
    "a percentage such as +30%, up to +1000000%, with at most nine decimal places";

Factor reduced(std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t common = std::gcd(numerator, denominator);
  return {numerator / common, denominator / common};
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return '0' <= c && c <= '9'; });
}

// Reads digits with or without a point between them.
std::optional<Factor> read_decimal(std::string_view text) {
  constexpr std::size_t kMostWhole = 7;
  constexpr std::size_t kMostPlaces = 9;
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const bool has_point = point != std::string_view::npos;
  const std::string_view places = has_point ? text.substr(point + 1) : std::string_view();
  if (!is_digits(whole) || whole.size() > kMostWhole) return std::nullopt;
  if (has_point && (!is_digits(places) || places.size() > kMostPlaces)) return std::nullopt;
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  for (const char digit : whole) numerator = 10 * numerator + (digit - '0');
  for (const char digit : places) {
    numerator = 10 * numerator + (digit - '0');
    denominator *= 10;
  }
  if (numerator > kLargestFactor * denominator) return std::nullopt;
  return reduced(numerator, denominator);
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    if (space > 0) words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return words;
}

class ChangeParser {
 public:
  ChangeParser(std::string_view text, const std::string& flag)
      : text_(text), flag_(flag), words_(split_words(text)) {}

  WhatIfChange parse() const {
    if (words_.size() == 3 && words_[0] == "device") {
      const ScaleDevice change{DeviceId{number(words_[1])}, factor(words_[2])};
      if (change.factor.numerator == 0) refuse("a factor above 0");
      return change;
    }
    if (words_.size() == 3 && words_[0] == "straggler") {
      return ScaleDevice{DeviceId{number(words_[1])}, slowdown(words_[2])};
    }
    if (words_.size() == 3 && words_[0] == "layer") {
      return ScaleLayer{LayerId{number(words_[1])}, factor(words_[2])};
    }
    if ((words_.size() == 3 || words_.size() == 4) && words_[0] == "link") return link();
    refuse(kForms);
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    constexpr std::size_t kMostShown = 100;
    throw InputError(flag_, 0, fmt::format("`{}`", text_.substr(0, kMostShown)),
                     std::string(expected));
  }

  WhatIfChange link() const {
    const std::size_t arrow = words_[1].find('>');
    if (arrow == std::string_view::npos) refuse(kForms);
    ScaleLink change{.from = DeviceId{number(words_[1].substr(0, arrow))},
                     .to = DeviceId{number(words_[1].substr(arrow + 1))},
                     .factor = factor(words_.back())};
    if (change.from == change.to) refuse("two different devices");
    if (words_.size() == 4) {
      change.latency = words_[2] == "latency";
      change.transfer = words_[2] == "transfer";
      if (!change.latency && !change.transfer) refuse(kForms);
    }
    return change;
  }

  std::int32_t number(std::string_view word) const {
    std::int32_t value = 0;
    if (!is_digits(word)) refuse(kForms);
    if (std::from_chars(word.data(), word.data() + word.size(), value).ec != std::errc()) {
      refuse("numbers below 2^31");
    }
    return value;
  }

  Factor factor(std::string_view word) const {
    if (!word.starts_with('x')) refuse(kForms);
    const std::optional<Factor> factor = read_decimal(word.substr(1));
    if (!factor) refuse(kFactors);
    return *factor;
  }

  Factor slowdown(std::string_view word) const {
    if (word.size() < 2 || word.front() != '+' || word.back() != '%') refuse(kForms);
    const std::optional<Factor> percent = read_decimal(word.substr(1, word.size() - 2));
    if (!percent) refuse(kPercents);
    const auto [numerator, denominator] = *percent;
    return reduced(100 * denominator + numerator, 100 * denominator);
  }

  std::string_view text_;
  const std::string& flag_;
  std::vector<std::string_view> words_;
};

// Returns value x by, rounded to the nearest whole number, halves up. Throws an InputError that
// names `what` if the result is below `least` or above `most`.
std::int64_t scale(std::int64_t value, Factor by, std::int64_t least, std::int64_t most,
                   const std::string& what, const std::string& flag) {
  const Wide parts = by.denominator;
  const Wide scaled = (2 * Wide{value} * by.numerator + parts) / (2 * parts);
  if (scaled < least || scaled > most) {
    throw InputError(flag, 0,
                     fmt::format("{} of {} x {}/{}", what, value, by.numerator, by.denominator),
                     fmt::format("{} to {}", least, most));
  }
  return static_cast<std::int64_t>(scaled);
}

void check_index(const char* noun, std::size_t index, std::size_t count, const std::string& flag) {
  if (index < count) return;
  throw InputError(flag, 0, fmt::format("{} {}", noun, index),
                   fmt::format("a {} below {}", noun, count));
}

struct Applier {
  Measured& measured;
  const std::string& flag;

  void operator()(const ScaleDevice& change) const {
    check_device(change.device);
    std::int64_t& time_ppm = measured.cluster.devices[change.device.index()].time_ppm;
    time_ppm = scale(time_ppm, change.factor, 1, kLargestTimePpm,
                     fmt::format("device {}: a time_ppm", change.device.value), flag);
  }

  void operator()(const ScaleLink& change) const {
    check_device(change.from);
    check_device(change.to);
    const std::string what = fmt::format("link {}>{}: a ", change.from.value, change.to.value);
    Link& link = own_link(change.from, change.to);
    if (change.latency) {
      link.latency = Duration{scale(link.latency.count(), change.factor, 0, kLargestQuantity,
                                    what + "latency in ns", flag)};
    }
    if (!change.transfer || link.bandwidth.count == 0) return;
    const Factor inverse{change.factor.denominator, change.factor.numerator};
    link.bandwidth.count = change.factor.numerator == 0
                               ? 0
                               : scale(link.bandwidth.count, inverse, 1, kLargestQuantity,
                                       what + "bandwidth in bytes per second", flag);
  }

  void operator()(const ScaleLayer& change) const {
    check_index("layer", change.layer.index(), measured.profile.layers.size(), flag);
    Layer& layer = measured.profile.layers[change.layer.index()];
    const std::string what = fmt::format("layer {}: a time in ns", change.layer.value);
    const auto multiply = [&](Duration& time) {
      time = Duration{scale(time.count(), change.factor, 0, kLargestQuantity, what, flag)};
    };
    multiply(layer.update);
    for (CostSample& cost : layer.costs) {
      for (Duration* time : {&cost.forward, &cost.forward_frozen, &cost.backward_input,
                             &cost.backward_weight, &cost.backward_weight_alone}) {
        multiply(*time);
      }
    }
  }

 private:
  void check_device(DeviceId device) const {
    check_index("device", device.index(), measured.cluster.devices.size(), flag);
  }

  // Returns the pair's own entry among the overrides; makes it from the pair's usual link if there
  // is none.
  Link& own_link(DeviceId from, DeviceId to) const {
    Cluster& cluster = measured.cluster;
    const auto place =
        std::lower_bound(cluster.links.begin(), cluster.links.end(), std::pair{from, to},
                         [](const DirectedLink& link, const std::pair<DeviceId, DeviceId>& ends) {
                           return std::pair{link.from, link.to} < ends;
                         });
    if (place != cluster.links.end() && place->from == from && place->to == to) return place->link;
    return cluster.links.insert(place, {from, to, cluster.link(from, to)})->link;
  }
};

}  // namespace

WhatIfChange parse_change(std::string_view text, const std::string& flag) {
  return ChangeParser(text, flag).parse();
}

Measured apply_changes(std::span<const WhatIfChange> changes, Measured measured,
                       const std::string& flag) {
  for (const WhatIfChange& change : changes) std::visit(Applier{measured, flag}, change);
  return measured;
}

}  // namespace frazil
