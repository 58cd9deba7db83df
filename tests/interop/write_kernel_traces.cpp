// write_kernel_traces TIMELINE.csv FOLDER: a file rank<d>.json for each device that has spans.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <string>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "traces/kernel_trace.h"
#include "traces/timeline_csv.h"

int main(int count, char** arguments) {
  using namespace frazil;
  if (count != 3) {
    std::fputs("usage: write_kernel_traces TIMELINE.csv FOLDER\n", stderr);
    return static_cast<int>(ExitCode::kBadInput);
  }
  try {
    const Timeline timeline = read_timeline_csv(arguments[1]);
    std::set<DeviceId> devices;
    for (const Span& span : timeline.spans) devices.insert(span.device);
    for (const DeviceId device : devices) {
      const std::string name = "rank" + std::to_string(device.value) + ".json";
      write_text_file(std::filesystem::path(arguments[2]) / name,
                      to_kernel_trace(timeline, device));
    }
    return static_cast<int>(ExitCode::kOk);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_kernel_traces: %s\n", error.what());
    return static_cast<int>(ExitCode::kFailure);
  }
}
