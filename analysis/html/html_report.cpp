#include "analysis/html/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/html/html_curves.h"
#include "analysis/html/html_decisions.h"
#include "analysis/html/html_parts.h"
#include "analysis/html/html_phases.h"
#include "analysis/html/html_totals.h"
#include "analysis/run_answer.h"
#include "analysis/svg/svg_parts.h"

namespace frazil {
namespace {

// A span takes about 200 bytes, so that time lines take less than 800 kB of a page.
constexpr std::size_t kMostSpans = 4000;

std::string draw_run(const ReportRun& run, const RunSummary& summary, std::size_t& spans_left) {
  std::string markup =
      fmt::format("<h2>Predicted against measured: {}</h2>\n", escape_markup(run.name));
  if (!summary.phases.empty()) {
    markup += html_paragraph("lead",
                             "Ratio = predicted / measured time: below 1, the run was slower than "
                             "predicted.");
    markup += draw_phase_table(summary);
  }
  markup += draw_decisions(run.trace);
  markup += draw_transitions(run.trace);
  markup += draw_cache(run.trace);
  markup += draw_drift(run.trace);
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    markup += draw_phase(run.phases[i], summary.phases.at(i), i, spans_left);
  }
  return markup;
}

// Returns the notes, and those of the runs with the runs' names; what several runs have in common
// stands once.
std::vector<std::string> join_notes(std::vector<std::string> notes,
                                    const std::vector<RunSummary>& summaries) {
  std::vector<std::pair<std::string, std::string>> of_runs;  // names, note
  for (const RunSummary& run : summaries) {
    for (const std::string& told : list_notes(run)) {
      const std::string note = told.starts_with("note: ") ? told.substr(6) : told;
      const auto same = std::find_if(of_runs.begin(), of_runs.end(),
                                     [&](const auto& known) { return known.second == note; });
      if (same == of_runs.end()) {
        of_runs.emplace_back(run.name, note);
      } else {
        same->first += ", " + run.name;
      }
    }
  }
  for (const auto& [names, note] : of_runs) notes.push_back(names + ": " + note);
  return notes;
}

std::string draw_provenance(const std::vector<ReportRun>& runs) {
  Table table{.header = {"run", "what", "value"}, .rows = {}};
  for (const ReportRun& run : runs) {
    for (const auto& [key, value] : run.trace.provenance) {
      table.rows.push_back({run.name, key, value});
    }
  }
  if (table.rows.empty()) return "";
  return "<h2>Where the numbers come from</h2>\n" + html_table(table);
}

}  // namespace

std::string to_html(const std::string& title, const std::vector<std::string>& notes,
                    const std::vector<ReportRun>& runs) {
  std::string page = open_page(title);
  page += html_paragraph("lead", "The same plan, simulated and executed, laid side by side.");
  std::vector<RunSummary> summaries;
  summaries.reserve(runs.size());
  for (const ReportRun& run : runs) summaries.push_back(summarize(run));
  page += html_notes(join_notes(notes, summaries));
  if (!summaries.empty()) {
    page += draw_tiles(summaries) + draw_totals(summaries);
    page += "<h2>The course of training</h2>\n" + draw_curves(runs, summaries);
  }
  std::size_t spans_left = kMostSpans;
  for (std::size_t i = 0; i < runs.size(); ++i) page += draw_run(runs[i], summaries[i], spans_left);
  page += draw_provenance(runs);
  page += "<footer>Frazil " FRAZIL_VERSION "</footer>\n";
  return page + close_page();
}

}  // namespace frazil
