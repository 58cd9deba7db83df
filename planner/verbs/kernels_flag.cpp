#include "planner/verbs/kernels_flag.h"

#include <array>
#include <string>
#include <string_view>

#include "profiles/known_names.h"

namespace frazil {

void add_kernels_flag(boost::program_options::options_description& flags) {
  flags.add_options()("kernels", text_value("KIND"),
                      "fastest: the fastest of this processor's that keep the bits equal under "
                      "every plan, tried once and kept (default); portable: those that other "
                      "processors have too");
}

bool wants_portable_kernels(const Flags& flags) {
  constexpr std::array<std::string_view, 2> kKinds = {"fastest", "portable"};
  const std::string kind = optional_text(flags, "kernels").value_or("fastest");
  return known_name("--kernels", kind, kKinds) == "portable";
}

}  // namespace frazil
