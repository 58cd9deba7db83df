// Any text is refused in a sentence, or is a schedule of PyTorch's that survives both ways of
// writing it again: cell by cell as it was read, and by our own export, which may number ranks
// anew.

#include "planner/interop/pytorch_csv.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "tests/fuzz/property.h"

namespace frazil {
namespace {

bool are_equal(const PytorchSchedule& a, const PytorchSchedule& b) {
  return a.schedule == b.schedule && a.dialect == b.dialect && a.shape.stages == b.shape.stages &&
         a.shape.micro_batches == b.shape.micro_batches &&
         a.shape.rank_of_stage == b.shape.rank_of_stage;
}

std::optional<PytorchSchedule> read_or_refuse(std::string_view text, LegacyPytorch legacy) {
  try {
    return parse_pytorch_csv(text, kFuzzedFile, legacy);
  } catch (const InputError& error) {
    require_sentence(error, text);
    return std::nullopt;
  }
}

std::optional<std::vector<std::string>> export_or_refuse(const PytorchSchedule& read) {
  try {
    return to_pytorch_csv(read.schedule, read.dialect);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

std::string print_cells(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& row : schedule.devices) {
    for (const Action& action : row) text += to_text(action) + (&action == &row.back() ? "" : ",");
    text += '\n';
  }
  return text;
}

// Lists the compute actions of each device, ordered by the devices' first stages, as the export
// counts ranks.
std::vector<std::vector<Action>> lists_by_first_stage(const PytorchSchedule& read) {
  const auto ranks = static_cast<int>(read.schedule.devices.size());
  const ExplicitSchedule compute = to_explicit_schedule(read, ranks);
  std::set<DeviceId> listed;
  std::vector<std::vector<Action>> lists;
  for (const DeviceId device : read.shape.rank_of_stage) {
    if (listed.insert(device).second) lists.push_back(compute.devices[device.index()]);
  }
  require(listed.size() == compute.devices.size(), "every rank has a stage");
  return lists;
}

void check_export(const PytorchSchedule& read) {
  const auto texts = export_or_refuse(read);
  if (!texts) return;
  require(texts->size() == 1, "one pipeline is one file");
  const PytorchSchedule again = parse_pytorch_csv(texts->front(), "exported.csv");
  require(again.dialect == read.dialect && again.shape.stages == read.shape.stages &&
              again.shape.micro_batches == read.shape.micro_batches,
          "an exported schedule has the shape of the one read");
  require(lists_by_first_stage(again) == lists_by_first_stage(read),
          "an exported schedule computes the same");
  require(export_or_refuse(again) == texts, "an exported schedule is exported as the same text");
}

void check_shape(const PytorchSchedule& read) {
  const auto stages = static_cast<std::size_t>(read.shape.stages);
  require(read.shape.rank_of_stage.size() == stages, "every stage lies on a rank");
  std::vector<int> forwards(stages);
  std::vector<int> backwards(stages);
  for (std::size_t rank = 0; rank < read.schedule.devices.size(); ++rank) {
    for (const Action& action : read.schedule.devices[rank]) {
      for (const Action& part : parts_of(action)) {
        const std::size_t stage = part.stage.index();
        require(stage < stages && read.shape.rank_of_stage[stage].index() == rank,
                "an action stands on the rank of its stage");
        require(!part.micro_batches || part.micro_batches->last.value < read.shape.micro_batches,
                "an action is of one of the micro-batches");
        forwards[stage] += part.kind == ActionKind::kForward;
        backwards[stage] +=
            part.kind == ActionKind::kBackward || part.kind == ActionKind::kBackwardInput;
      }
    }
  }
  const std::vector<int> all(stages, read.shape.micro_batches);
  require(forwards == all && backwards == all, "every stage runs every micro-batch both ways");
}

void check_schedule(const PytorchSchedule& read) {
  check_shape(read);
  const auto again = read_or_refuse(print_cells(read.schedule), LegacyPytorch::kRefuse);
  require(again && are_equal(*again, read), "a schedule written cell by cell is read again");
  check_export(read);
}

void check(std::string_view text) {
  const auto today = read_or_refuse(text, LegacyPytorch::kRefuse);
  if (today) check_schedule(*today);
  const auto converted = read_or_refuse(text, LegacyPytorch::kConvert);
  require(!today || (converted && are_equal(*converted, *today)),
          "a request to convert changes no file of today");
  if (converted && !today) check_schedule(*converted);
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frazil::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
