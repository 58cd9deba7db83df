#include "planner/reproduce/headlines/headlines.h"

#include <fmt/format.h>

#include "planner/reproduce/headlines/balance_headlines.h"
#include "planner/reproduce/headlines/schedule_headlines.h"
#include "planner/reproduce/pipe_bd/pipe_bd_results.h"
#include "planner/reproduce/pipe_bd/pipe_bd_verdicts.h"
#include "planner/reproduce/pipetransformer_tables.h"
#include "planner/verbs/command_line.h"

namespace frazil {

namespace {

ResultRow compare_pipe_transformer() {
  ResultRow row = reproduce_headline().rows.front();
  row.name = "PipeTransformer over GPipe, " + row.name;
  row.reason =
      "mostly the baseline, which the plots show slower than its log: see `reproduce "
      "pipetransformer`";
  return row;
}

// The last method, with all parts, on each task that is simulated from what was published.
std::vector<ResultRow> compare_pipe_bd() {
  constexpr std::size_t kLast = kBlockwiseMethods.size() - 1;
  std::vector<ResultRow> rows;
  for (const SpeedupResult& result : simulate_speedups()) {
    if (!result.bar) continue;
    rows.push_back({fmt::format("Pipe-BD over data parallelism, {} on {}", result.published.task,
                                result.published.dataset),
                    result.published.thousandths[kLast] / 1000.0, find_speedup(result, kLast),
                    RowRole::kPrediction,
                    fmt::format("all-reduces and relays were not published and take no time; {} "
                                "`reproduce pipe-bd`{}",
                                result.fitted ? "loading is fitted on another row of" : "see",
                                result.fitted ? "" : " for loading")});
  }
  return rows;
}

}  // namespace

ResultTable simulate_headlines() {
  ResultTable table{.title = "Headlines of papers about pipelines", .unit = "ratio", .rows = {}};
  table.rows.push_back(compare_pipe_transformer());
  for (const auto& more :
       {compare_pipe_bd(), list_balance_headlines(), list_schedule_headlines()}) {
    table.rows.insert(table.rows.end(), more.begin(), more.end());
  }
  return table;
}

void describe_headlines_flags(boost::program_options::options_description&) {}

ExitCode reproduce_headlines(const Flags& values) {
  if (values.count("data") > 0) {
    refuse_flags("--data with reproduce headlines", "no data: its figures are its own");
  }
  const std::vector<ResultTable> tables{simulate_headlines()};
  print_answer(is_set(values, "json") ? fmt::format("{{\"tables\":{}}}\n", tables_json(tables))
                                      : print_tables(tables));
  return ExitCode::kOk;
}

}  // namespace frazil
