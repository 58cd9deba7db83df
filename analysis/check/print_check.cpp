#include "analysis/check/print_check.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/check/hash_stream.h"
#include "analysis/tables/table.h"
#include "profiles/error.h"

namespace frazil {

std::string print_check(const RunCheck& check) {
  Table table{{"part", "what it holds"}, {}};
  for (const auto& [part, holds] : check.parts) table.rows.push_back({part, holds});
  std::string text = to_text(table);
  for (const std::string& note : check.notes) text += fmt::format("note: {}\n", note);
  for (const std::string& problem : check.problems) text += fmt::format("problem: {}\n", problem);
  return text + (check.agrees() ? "all parts hold and agree\n"
                                : fmt::format("{} problem{}\n", check.problems.size(),
                                              check.problems.size() == 1 ? "" : "s"));
}

std::string check_json(const RunCheck& check) {
  nlohmann::ordered_json answer{{"agrees", check.agrees()}, {"steps", check.steps}};
  answer["parts"] = nlohmann::ordered_json::object();
  for (const auto& [part, holds] : check.parts) answer["parts"][part] = to_one_line(holds);
  answer["checkpoints"] = nlohmann::ordered_json::array();
  for (const auto& [step, hash] : check.checkpoints) {
    answer["checkpoints"].push_back({{"step", step}, {"weights", hex_text(hash)}});
  }
  const auto list = [](const std::vector<std::string>& sentences) {
    nlohmann::ordered_json texts = nlohmann::ordered_json::array();
    for (const std::string& sentence : sentences) texts.push_back(to_one_line(sentence));
    return texts;
  };
  answer["notes"] = list(check.notes);
  answer["problems"] = list(check.problems);
  return answer.dump(2) + "\n";
}

}  // namespace frazil
