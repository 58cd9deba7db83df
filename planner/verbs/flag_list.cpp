#include "planner/verbs/flag_list.h"

#include <nlohmann/json.hpp>

#include "planner/verbs/flags.h"

namespace frazil {

std::string list_flags(const std::string& name, const std::string& purpose,
                       const std::string& usage,
                       const boost::program_options::options_description& options) {
  nlohmann::ordered_json flags = nlohmann::ordered_json::array();
  for (const auto& option : options.options()) {
    flags.push_back({{"name", option->long_name()},
                     {"value", option->format_parameter()},
                     {"meaning", option->description()}});
    const auto* const known = dynamic_cast<const KnownValue*>(option->semantic().get());
    if (known != nullptr) flags.back()["values"] = known->words();
  }
  const nlohmann::ordered_json list = {
      {"name", name}, {"purpose", purpose}, {"usage", usage}, {"flags", flags}};
  return list.dump() + "\n";
}

}  // namespace frazil
