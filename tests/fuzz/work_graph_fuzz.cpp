// Any text is refused in a sentence, or is a work graph that is split soundly, or is not split for
// a stated reason.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/partition/partition_graph.h"
#include "profiles/import/work_graph_json.h"
#include "tests/fuzz/property.h"

namespace frazil {
namespace {

std::optional<WorkGraph> read_or_refuse(std::string_view text) {
  try {
    return parse_work_graph(text, kFuzzedFile);
  } catch (const InputError& error) {
    require_sentence(error, text);
    return std::nullopt;
  }
}

void check(std::string_view text) {
  const std::optional<WorkGraph> graph = read_or_refuse(text);
  if (!graph) return;
  try {
    const GraphPartition partition = partition_graph(*graph, {.ideals = 200, .states = 2'000});
    require(partition.lower_bound <= partition.load, "a lower bound lies below");
    std::vector<int> places(graph->nodes.size());
    for (const GraphStage& stage : partition.stages) {
      require(stage.load() <= partition.load, "no stage is above the largest load");
      require(stage.is_host || stage.memory <= graph->device_memory, "a stage fits its device");
      for (const std::size_t node : stage.nodes) ++places[node];
    }
    for (const int count : places) require(count == 1, "every node has one place");
    require(partition.idle_devices >= 0, "no device is used twice");
  } catch (const InfeasibleError& error) {
    require(*error.what() != '\0', "what cannot be done has a reason");
  }
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frazil::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
