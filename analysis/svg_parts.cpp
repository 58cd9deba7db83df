#include "analysis/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace frazil {
namespace {

// Variables, so that a page in the dark changes colours and nothing else.
constexpr std::string_view kStyle = R"(<style>
.frazil{--ink:#1c2330;--soft:#5d6878;--grid:#e2e6ec;--track:#f1f3f6;
--F:#0072b2;--B:#e69f00;--I:#d55e00;--W:#009e73;--R:#f0e442;--U:#cc79a7;--G:#56b4e9;--S:#8d96a3;
--M:#6b5b95;--s0:#0072b2;--s1:#d55e00;--s2:#009e73;--s3:#b0558a;--s4:#a87400;--s5:#3aa0dd;
--frozen:#8cc6ea;--active:#e69f00;--warn:#b3261e;
display:block;max-width:100%;height:auto;
font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums}
@media (prefers-color-scheme:dark){.frazil{--ink:#e8ebf0;--soft:#9aa5b5;--grid:#2b323d;
--track:#20262f;--F:#2b8fd0;--G:#b8e3fa;--s0:#4fb0ea;--s1:#f08a50;--s2:#2fc79a;--s3:#dd9bc1;--s4:#e6b94a;
--s5:#9bd8f8;--frozen:#3f86b3;--active:#d9960a;--warn:#ff8a80}}
.frazil text{fill:var(--ink)}.frazil .soft{fill:var(--soft)}
.frazil .title{font-weight:600;font-size:13px}
.frazil .tiny{font-size:9.5px;fill:var(--soft)}.frazil .small{font-size:11px;fill:var(--soft)}.frazil .in{font-size:10.5px}
.frazil .grid{stroke:var(--grid);fill:none}.frazil .axis{stroke:var(--soft);fill:none}
.frazil .warn{fill:var(--warn);font-weight:600}.frazil .level{stroke:var(--ink);stroke-dasharray:9 5;fill:none}
.frazil .mark{stroke:var(--soft);stroke-dasharray:3 3;fill:none}.frazil .track{fill:var(--track)}
.frazil .line{fill:none;stroke-width:2;stroke-linejoin:round}
.frazil .F path{fill:var(--F)}.frazil .B path{fill:var(--B)}.frazil .I path{fill:var(--I)}
.frazil .W path{fill:var(--W)}.frazil .R path{fill:var(--R)}.frazil .U path{fill:var(--U)}
.frazil .G path{fill:var(--G)}.frazil .S path{fill:var(--S)}.frazil .M path{fill:var(--M)}
.frazil .F .in,.frazil .M .in{fill:#fff}
.frazil .B .in,.frazil .I .in,.frazil .W .in,.frazil .R .in,.frazil .U .in,
.frazil .G .in,.frazil .S .in{fill:#10151d}
.frazil .N path{fill:var(--soft)}
.frazil .c1 path{fill-opacity:.55}.frazil .c2 path{fill-opacity:.32}.frazil .c3 path{fill-opacity:.18}
.frazil .c1 .in,.frazil .c2 .in,.frazil .c3 .in{fill:var(--ink)}
.frazil .frozen path{fill:var(--frozen)}.frazil .active path{fill:var(--active)}
.frazil .s0 path{fill:var(--s0)}.frazil .s1 path{fill:var(--s1)}.frazil .s2 path{fill:var(--s2)}
.frazil .s3 path{fill:var(--s3)}.frazil .s4 path{fill:var(--s4)}.frazil .s5 path{fill:var(--s5)}
.frazil .s0 .line{fill:none;stroke:var(--s0)}.frazil .s1 .line{fill:none;stroke:var(--s1);stroke-dasharray:7 4}
.frazil .s2 .line{fill:none;stroke:var(--s2)}.frazil .s3 .line{fill:none;stroke:var(--s3);stroke-dasharray:2 3}
.frazil .s4 .line{fill:none;stroke:var(--s4)}.frazil .s5 .line{fill:none;stroke:var(--s5);stroke-dasharray:9 3 2 3}
</style>
)";

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

std::string open_svg(double width, double height, std::string_view label) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"frazil\" role=\"img\" "
             "aria-label=\"{}\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} "
             "{:.0f}\">\n",
             escape_markup(label), width, height, width, height) +
         std::string(kStyle);
}

std::string close_svg() { return "</svg>\n"; }

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
      legend.svg +=
          fmt::format("<g class=\"{}\"><path d=\"M{} {}h{}v{}h-{}z\"/></g>\n", entry.css_class,
                      coordinate(x), coordinate(y + 3), kSwatch, kSwatch, kSwatch);
    }
    legend.svg +=
        draw_text(x + indent, y + 13, Anchor::kStart, entry.warns ? "warn" : "soft", entry.word);
    x += width + 16;
  }
  legend.height = y + kRow - top;
  return legend;
}

}  // namespace frazil
