#include "analysis/svg/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace frazil {
namespace {

struct Colour {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};
constexpr auto kColours = std::to_array<Colour>({
    {"ink", "#1c2330", "#e8ebf0"},    {"soft", "#5d6878", "#9aa5b5"},
    {"grid", "#e2e6ec", "#2b323d"},   {"track", "#f1f3f6", "#20262f"},
    {"F", "#0072b2", "#2b8fd0"},      {"B", "#e69f00", "#e69f00"},
    {"I", "#d55e00", "#d55e00"},      {"W", "#009e73", "#009e73"},
    {"R", "#f0e442", "#f0e442"},      {"U", "#cc79a7", "#cc79a7"},
    {"G", "#56b4e9", "#b8e3fa"},      {"S", "#8d96a3", "#8d96a3"},
    {"M", "#6b5b95", "#6b5b95"},      {"s0", "#0072b2", "#4fb0ea"},
    {"s1", "#d55e00", "#f08a50"},     {"s2", "#009e73", "#2fc79a"},
    {"s3", "#b0558a", "#dd9bc1"},     {"s4", "#a87400", "#e6b94a"},
    {"s5", "#3aa0dd", "#9bd8f8"},     {"s6", "#7a4fa3", "#bd9cf0"},
    {"s7", "#8c3a0f", "#e0a080"},     {"s8", "#5b7d12", "#a9d45a"},
    {"s9", "#c2185b", "#ff86b8"},     {"s10", "#00757f", "#45d0dc"},
    {"s11", "#52616b", "#b4c3cc"},    {"frozen", "#8cc6ea", "#3f86b3"},
    {"active", "#e69f00", "#d9960a"}, {"warn", "#b3261e", "#ff8a80"},
});

constexpr std::string_view kBase = R"(.frazil{display:block;max-width:100%;height:auto;
font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums}
)";

// Rules in which a colour stands as $name.
constexpr std::string_view kRules = R"(.frazil text{fill:$ink}.frazil .soft{fill:$soft}
.frazil .title{font-weight:600;font-size:13px}
.frazil .tiny{font-size:9.5px;fill:$soft}.frazil .small{font-size:11px;fill:$soft}.frazil .in{font-size:10.5px}
.frazil .grid{stroke:$grid;fill:none}.frazil .axis{stroke:$soft;fill:none}
.frazil .warn{fill:$warn;font-weight:600}.frazil .level{stroke:$ink;stroke-dasharray:9 5;fill:none}
.frazil .mark{stroke:$soft;stroke-dasharray:3 3;fill:none}.frazil .track{fill:$track}
.frazil .line{fill:none;stroke-width:2;stroke-linejoin:round}
.frazil .F path{fill:$F}.frazil .B path{fill:$B}.frazil .I path{fill:$I}
.frazil .W path{fill:$W}.frazil .R path{fill:$R}.frazil .U path{fill:$U}
.frazil .G path{fill:$G}.frazil .S path{fill:$S}.frazil .M path{fill:$M}
.frazil .F .in,.frazil .M .in{fill:#fff}
.frazil .B .in,.frazil .I .in,.frazil .W .in,.frazil .R .in,.frazil .U .in,
.frazil .G .in,.frazil .S .in{fill:#10151d}
.frazil .N path{fill:$soft}
.frazil .c1 path{fill-opacity:.55}.frazil .c2 path{fill-opacity:.32}.frazil .c3 path{fill-opacity:.18}
.frazil .c1 .in,.frazil .c2 .in,.frazil .c3 .in{fill:$ink}
.frazil .frozen path{fill:$frozen}.frazil .active path{fill:$active}
.frazil .s0 path{fill:$s0}.frazil .s1 path{fill:$s1}.frazil .s2 path{fill:$s2}
.frazil .s3 path{fill:$s3}.frazil .s4 path{fill:$s4}.frazil .s5 path{fill:$s5}
.frazil .s6 path{fill:$s6}.frazil .s7 path{fill:$s7}.frazil .s8 path{fill:$s8}
.frazil .s9 path{fill:$s9}.frazil .s10 path{fill:$s10}.frazil .s11 path{fill:$s11}
.frazil .r1 path{fill-opacity:.6}.frazil .r2 path{fill-opacity:.4}.frazil .r3 path{fill-opacity:.2}
.frazil .s0 .line{fill:none;stroke:$s0}.frazil .s1 .line{fill:none;stroke:$s1;stroke-dasharray:7 4}
.frazil .s2 .line{fill:none;stroke:$s2}.frazil .s3 .line{fill:none;stroke:$s3;stroke-dasharray:2 3}
.frazil .s4 .line{fill:none;stroke:$s4}.frazil .s5 .line{fill:none;stroke:$s5;stroke-dasharray:9 3 2 3}
.frazil .s6 .line{fill:none;stroke:$s6}.frazil .s7 .line{fill:none;stroke:$s7;stroke-dasharray:7 4}
.frazil .s8 .line{fill:none;stroke:$s8}.frazil .s9 .line{fill:none;stroke:$s9;stroke-dasharray:2 3}
.frazil .s10 .line{fill:none;stroke:$s10}.frazil .s11 .line{fill:none;stroke:$s11;stroke-dasharray:9 3 2 3}
.frazil .r1 .line{stroke-dasharray:1 3}.frazil .r2 .line{stroke-dasharray:14 4}
.frazil .r3 .line{stroke-dasharray:14 3 1 3}
)";

// Puts the colours in place. CSS variables would not do: programs other than browsers paint them
// black.
std::string colour_rules(std::string_view Colour::*shade) {
  std::string rules(kRules);
  for (const Colour& colour : kColours) {
    const std::string name = fmt::format("${}", colour.name);
    for (std::size_t at = rules.find(name); at != std::string::npos;
         at = rules.find(name, at + 1)) {
      const char next = rules[at + name.size()];
      if (next == ';' || next == '}') rules.replace(at, name.size(), colour.*shade);
    }
  }
  return rules;
}

std::string_view anchor_name(Anchor anchor) {
  switch (anchor) {
    case Anchor::kStart:
      return "start";
    case Anchor::kMiddle:
      return "middle";
    case Anchor::kEnd:
      return "end";
  }
  return "start";
}

bool continues_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::size_t count_letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !continues_letter(byte); }));
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(letter) < 0x20U ? ' ' : letter;
    }
  }
  return escaped;
}

std::string coordinate(double value) {
  return fmt::format("{:.2f}", std::abs(value) < 0.005 ? 0.0 : value);
}

// A dark page changes colours and nothing else.
std::string style_of_pictures() {
  return fmt::format("<style>\n{}{}@media (prefers-color-scheme:dark){{\n{}}}\n</style>\n", kBase,
                     colour_rules(&Colour::light), colour_rules(&Colour::dark));
}

std::string open_svg(double width, double height, std::string_view label) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"frazil\" role=\"img\" "
             "aria-label=\"{}\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} "
             "{:.0f}\">\n",
             escape_markup(label), width, height, width, height) +
         style_of_pictures();
}

std::string close_svg() { return "</svg>\n"; }

double height_of(const std::string& svg) {
  const std::string mark = "height=\"";
  return std::stod(svg.substr(svg.find(mark) + mark.size()));
}

std::string move_down(std::string svg, double y) {
  return svg.replace(0, 4, fmt::format("<svg y=\"{:.0f}\"", y));
}

std::string draw_text(double x, double y, Anchor anchor, std::string_view css_class,
                      std::string_view text) {
  const std::string named = css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class);
  const std::string anchored =
      anchor == Anchor::kStart ? "" : fmt::format(" text-anchor=\"{}\"", anchor_name(anchor));
  return fmt::format("<text{} x=\"{}\" y=\"{}\"{}>{}</text>\n", named, coordinate(x), coordinate(y),
                     anchored, escape_markup(text));
}

double text_width(std::string_view text, double size) {
  // System faces draw a letter about 0.55 to 0.6 of their size wide; a little more keeps labels
  // apart.
  return 0.61 * size * static_cast<double>(count_letters(text));
}

std::string shorten(const std::string& text, std::size_t letters) {
  if (count_letters(text) <= letters) return text;
  std::size_t end = 0;
  for (std::size_t kept = 0; end < text.size(); ++end) {
    if (!continues_letter(text[end]) && kept++ + 1 >= letters) break;
  }
  return text.substr(0, end) + "…";
}

std::string Ticks::text(double value) const {
  const double shown = std::abs(value) < spacing / 1000 ? 0.0 : value;
  return fmt::format("{:.{}f}", shown, decimals);
}

Ticks make_ticks(double low, double high, int wanted) {
  constexpr int kSmallest = -12;
  constexpr int kLargest = 20;
  const double raw = (high - low) / wanted;
  Ticks ticks;
  const auto spaced = [raw, &ticks] {
    for (int power = kSmallest; power <= kLargest; ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        ticks.spacing = digit * std::pow(10.0, power);
        ticks.decimals = std::max(0, -power);
        if (ticks.spacing >= raw * (1 - 1e-9)) return;
      }
    }
  };
  spaced();
  const double first = std::ceil(low / ticks.spacing - 1e-9);
  const double last = std::floor(high / ticks.spacing + 1e-9);
  for (double i = first; i <= last && ticks.values.size() < 100; ++i) {
    ticks.values.push_back(i * ticks.spacing);
  }
  return ticks;
}

std::string_view faint_attribute(bool faint) { return faint ? " opacity=\".45\"" : ""; }

Legend draw_legend(const std::vector<LegendEntry>& entries, double left, double right, double top) {
  constexpr double kRow = 18;
  constexpr double kSwatch = 11;
  Legend legend;
  if (entries.empty()) return legend;
  double x = left;
  double y = top;
  for (const LegendEntry& entry : entries) {
    const double indent = entry.css_class.empty() ? 0 : kSwatch + 5;
    const double width = indent + text_width(entry.word, entry.warns ? 13 : 12);
    if (x > left && x + width > right) {
      x = left;
      y += kRow;
    }
    if (!entry.css_class.empty()) {
      legend.svg += fmt::format("<g class=\"{}\"{}><path d=\"M{} {}h{}v{}h-{}z\"/></g>\n",
                                entry.css_class, faint_attribute(entry.faint), coordinate(x),
                                coordinate(y + 3), kSwatch, kSwatch, kSwatch);
    }
    legend.svg +=
        draw_text(x + indent, y + 13, Anchor::kStart, entry.warns ? "warn" : "soft", entry.word);
    x += width + 16;
  }
  legend.height = y + kRow - top;
  return legend;
}

}  // namespace frazil
