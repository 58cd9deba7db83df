// print_pytorch_csv FILE [convert]: what parse_pytorch_csv makes of a file, as the text of a
// schedule; `convert` takes legacy files too.

#include <cstdio>
#include <exception>
#include <string_view>

#include "planner/interop/pytorch_csv.h"
#include "profiles/error.h"
#include "profiles/text_file.h"

int main(int count, char** arguments) {
  using namespace frazil;
  const bool converts = count == 3 && std::string_view(arguments[2]) == "convert";
  if (count != 2 && !converts) {
    std::fputs("usage: print_pytorch_csv FILE [convert]\n", stderr);
    return static_cast<int>(ExitCode::kBadInput);
  }
  try {
    const PytorchSchedule imported =
        parse_pytorch_csv(read_text_file(arguments[1]), arguments[1],
                          converts ? LegacyPytorch::kConvert : LegacyPytorch::kRefuse);
    std::fputs(to_text(imported.schedule).c_str(), stdout);
    return static_cast<int>(ExitCode::kOk);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "print_pytorch_csv: %s\n", error.what());
    return static_cast<int>(ExitCode::kFailure);
  }
}
