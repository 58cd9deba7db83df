#include "analysis/html/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "analysis/html/page_script.h"
#include "analysis/svg/svg_parts.h"

namespace frazil {
namespace {

constexpr std::string_view kStyle = R"(<style>
:root{color-scheme:light dark;--paper:#fff;--panel:#f7f8fa;--ink:#1c2330;--soft:#5d6878;--warn:#b3261e;
--rule:#e2e6ec;--accent:#0072b2;--note:#fff6e0;--note-rule:#e6b94a}
@media (prefers-color-scheme:dark){:root{--paper:#14181f;--panel:#1b2028;--ink:#e8ebf0;--warn:#ff8a80;
--soft:#9aa5b5;--rule:#2b323d;--accent:#4fb0ea;--note:#2a2415;--note-rule:#a87400}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);line-height:1.5;
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1024px;margin:0 auto;padding:40px 32px 64px}
h1{font-size:28px;line-height:1.2;letter-spacing:-.01em;margin:0 0 6px}
h2{font-size:19px;margin:48px 0 4px;padding-top:20px;border-top:1px solid var(--rule)}
h3{font-size:16px;margin:32px 0 2px}h4{font-size:14px;margin:20px 0 2px}
p{margin:6px 0}.lead,.remark{color:var(--soft)}.remark{font-size:13.5px}
a{color:var(--accent)}.warn{color:var(--warn);font-weight:600}
.notes{margin:18px 0 0;padding:10px 16px 10px 32px;background:var(--note);
border-left:3px solid var(--note-rule);border-radius:4px;font-size:14px}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:24px 0 8px}
.tile{flex:1 1 200px;background:var(--panel);border:1px solid var(--rule);border-radius:8px;
padding:12px 16px}
.tile b{display:block;font-size:24px;font-weight:600;line-height:1.25;
font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px;display:block}.tile .warn{color:var(--warn)}
.wide{overflow-x:auto;margin:14px 0}
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums;min-width:50%}
th{font-weight:600;color:var(--soft);text-align:left;border-bottom:1px solid var(--soft);
vertical-align:bottom}
th,td{padding:5px 14px 5px 0}th:not(:first-child),td:not(:first-child){padding-left:10px}
td{border-bottom:1px solid var(--rule);vertical-align:top}
.n{text-align:right}td.n,td:first-child{white-space:nowrap}.w{min-width:200px}
figure{margin:18px 0}.pair{display:grid;grid-template-columns:1fr 1fr;gap:24px}
@media (max-width:760px){.pair{grid-template-columns:1fr}main{padding:24px 16px}}
details{margin:10px 0}summary{cursor:pointer;color:var(--accent);font-size:14px}
code{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
footer{margin-top:56px;color:var(--soft);font-size:13px}
pre.lines{font:12.5px/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-x:auto}
pre.lines span{display:block;white-space:pre-wrap;padding-left:2ch;text-indent:-2ch}
pre.lines .row{white-space:pre}
.tip{position:fixed;z-index:1;pointer-events:none;white-space:pre;font-size:12.5px;line-height:1.45;
padding:4px 9px;border-radius:5px;background:var(--ink);color:var(--paper)}
.plot.zoomed path{vector-effect:non-scaling-stroke}.chosen{fill:var(--accent);fill-opacity:.2}
svg[tabindex]{cursor:crosshair;touch-action:pan-y;user-select:none;-webkit-user-select:none}
svg[tabindex]:focus-visible{outline:2px solid var(--accent);outline-offset:4px}
@media print{.hint{display:none}h2{break-after:avoid}figure,.tile{break-inside:avoid}}
</style>
)";

bool is_unit(std::string_view word) {
  constexpr std::array<std::string_view, 6> kUnits = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end();
}

bool is_number_cell(const std::string& cell) {
  if (cell.empty() || cell == "–") return true;
  const std::string amount = cell.substr(0, cell.find(' '));
  return is_number(cell) || (is_number(amount) && is_unit(cell.substr(amount.size())));
}

std::vector<bool> number_columns(const Table& table) {
  std::vector<bool> numbers(table.header.size(), !table.rows.empty());
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) numbers[i] = numbers[i] && is_number_cell(row[i]);
  }
  return numbers;
}

// Chooses the class of a cell, for a sentence in a narrow column would become a tower of words.
std::string_view cell_class(const std::string& cell, bool number) {
  constexpr std::size_t kSentence = 24;
  if (number) return " class=\"n\"";
  return cell.size() > kSentence ? " class=\"w\"" : "";
}

std::string html_row(const std::vector<std::string>& cells, const std::vector<bool>& numbers,
                     std::string_view element) {
  std::string markup = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    markup += fmt::format("<{0}{1}>{2}</{0}>", element, cell_class(cells[i], numbers[i]),
                          escape_markup(cells[i]));
  }
  return markup + "</tr>\n";
}

// Turns "-1234.5" into "-1,234.5".
std::string group_thousands(std::string_view plain) {
  const std::size_t end = std::min(plain.find('.'), plain.size());
  std::string grouped;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const bool after_digit = i > 0 && plain[i - 1] != '-';
    if (i < end && after_digit && (end - i) % 3 == 0) grouped += ',';
    grouped += plain[i];
  }
  return grouped;
}

}  // namespace

std::string open_page(const std::string& title) {
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<title>{}</title>\n",
             escape_markup(title)) +
         std::string(kStyle) + style_of_pictures() +
         fmt::format("</head>\n<body>\n<main>\n<h1>{}</h1>\n", escape_markup(title));
}

std::string close_page() {
  return fmt::format("</main>\n<script>\n{}</script>\n</body>\n</html>\n", page_script());
}

std::string html_notes(const std::vector<std::string>& notes) {
  if (notes.empty()) return "";
  std::string markup = "<ul class=\"notes\">\n";
  for (const std::string& note : notes) markup += "<li>" + escape_markup(note) + "</li>\n";
  return markup + "</ul>\n";
}

std::string html_table(const Table& table) {
  const std::vector<bool> numbers = number_columns(table);
  std::string markup = "<div class=\"wide\"><table>\n<thead>";
  markup += html_row(table.header, numbers, "th") + "</thead>\n<tbody>\n";
  for (const auto& row : table.rows) markup += html_row(row, numbers, "td");
  return markup + "</tbody></table></div>\n";
}

std::string html_details(std::string_view summary, const Table& table, const std::string& below) {
  constexpr std::size_t kOpenRows = 14;
  return fmt::format("<details{}><summary>{}</summary>\n",
                     table.rows.size() <= kOpenRows ? " open" : "", escape_markup(summary)) +
         html_table(table) + below + "</details>\n";
}

std::string html_tiles(const std::vector<Tile>& tiles) {
  std::string markup = "<div class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    markup += fmt::format("<div class=\"tile\"><span>{}</span><b>{}</b><span>{}</span>",
                          escape_markup(tile.label), escape_markup(tile.value),
                          escape_markup(tile.remark));
    if (!tile.warning.empty()) {
      markup += fmt::format("<span class=\"warn\">{}</span>", escape_markup(tile.warning));
    }
    markup += "</div>\n";
  }
  return markup + "</div>\n";
}

std::string html_paragraph(std::string_view css_class, std::string_view text) {
  return fmt::format("<p class=\"{}\">{}</p>\n", css_class, escape_markup(text));
}

std::string html_figure(const std::string& svg_markup) {
  const std::string style = style_of_pictures();
  std::string bare = svg_markup;
  for (std::size_t at = 0; (at = bare.find(style, at)) != std::string::npos;) {
    bare.erase(at, style.size());
  }
  return "<figure>\n" + bare + "</figure>\n";
}

std::string html_link(const std::string& file, std::string_view text) {
  std::string address;
  for (const char letter : file) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
                          std::string_view("-._~/").find(letter) != std::string_view::npos;
    address += is_plain ? std::string(1, letter)
                        : fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  }
  return fmt::format("<a href=\"{}\">{}</a>", address, escape_markup(text));
}

std::string number_text(std::optional<double> value, int decimals) {
  if (!value || !std::isfinite(*value)) return "–";
  return group_thousands(fmt::format("{:.{}f}", *value, decimals));
}

std::string count_text(std::int64_t value) { return group_thousands(fmt::format("{}", value)); }

std::string rate_text(std::optional<double> per_second) {
  if (!per_second || *per_second >= 1000) return number_text(per_second, 0);
  return number_text(per_second, *per_second >= 10 ? 1 : 3);
}

}  // namespace frazil
