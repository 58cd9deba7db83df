#include "planner/verbs/kernels_flag.h"

#include <string>

#include "planner/verbs/known_words.h"
#include "profiles/known_names.h"

namespace frazil {

void add_kernels_flag(boost::program_options::options_description& flags) {
  flags.add_options()("kernels", known_value("KIND", kKernelWords),
                      "fastest: the fastest of this processor's that keep the bits equal under "
                      "every plan, tried once and kept (default); portable: those that other "
                      "processors have too");
}

bool wants_portable_kernels(const Flags& flags) {
  const std::string kind = optional_text(flags, "kernels").value_or("fastest");
  return known_name("--kernels", kind, kKernelWords) == "portable";
}

}  // namespace frazil
