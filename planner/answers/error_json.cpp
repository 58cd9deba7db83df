#include "planner/answers/error_json.h"

#include <nlohmann/json.hpp>

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

Json describe(ExitCode code, std::string_view sentence) {
  return {{"code", static_cast<int>(code)}, {"sentence", to_one_line(sentence)}};
}

std::string enclose(const Json& error) { return Json{{"error", error}}.dump() + "\n"; }

}  // namespace

std::string error_json(ExitCode code, std::string_view sentence) {
  return enclose(describe(code, sentence));
}

std::string error_json(std::string_view sentence, const InputError& error) {
  Json described = describe(error.code(), sentence);
  described["file"] = to_one_line(error.file());
  if (error.line() > 0) described["line"] = error.line();
  described["found"] = to_one_line(error.found());
  described["expected"] = to_one_line(error.expected());
  return enclose(described);
}

}  // namespace frazil
