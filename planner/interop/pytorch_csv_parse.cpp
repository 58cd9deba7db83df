#include "planner/interop/pytorch_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "profiles/cluster_shape.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::string_view kCells =
    "an F, B, I, W, SEND, RECV, REDUCE_GRAD, UNSHARD, RESHARD or pair of one stage and micro-batch";

// Of cells of so many characters, an F, B, I, W or R behind and before digits, no more than
// 140,000 differ. A file with more repeats itself, and is refused before it takes memory.
constexpr std::size_t kShortCell = 5;
constexpr int kMostShortCells = 150'000;

bool is_pytorch(const Action& part) {
  const bool known = part.kind != ActionKind::kRecompute && part.kind != ActionKind::kUpdate &&
                     part.kind != ActionKind::kBarrier && part.kind != ActionKind::kMove;
  const bool one = !part.micro_batches || part.micro_batches->count() == 1;
  return known && one && part.pipeline == PipelineId{} && !part.slice && !part.peer;
}

// Strips spaces and tabs from a cell, as PyTorch does.
std::string_view strip(std::string_view cell) {
  const auto first = cell.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return cell.substr(first, cell.find_last_not_of(" \t") - first + 1);
}

// Counts the cells of a row that are not empty.
std::size_t count_actions(std::string_view row) {
  std::size_t count = 0;
  char before = ',';
  for (const char character : row) {
    if (character == ' ' || character == '\t') continue;
    if (before == ',' && character != ',') ++count;
    before = character;
  }
  return count;
}

// Returns "2B0" for "2BW0"; none when the cell is no BW.
std::optional<std::string> without_w(std::string_view cell) {
  const auto at = cell.find("BW");
  if (at == std::string_view::npos) return std::nullopt;
  return fmt::format("{}B{}", cell.substr(0, at), cell.substr(at + 2));
}

// A stage and a micro-batch.
using WorkKey = std::pair<StageId, MicroBatchId>;

WorkKey key_of(const Action& part) { return {part.stage, part.micro_batches->first}; }

// The cells of a file before any check across cells. Row r is line r + 1.
struct RawRows {
  Schedule rows;
  std::set<WorkKey> legacy_full;  // backwards that are written BW
  int legacy_line = 0;            // first line with a BW; 0: none
  int bubble_line = 0;            // first line with an empty cell; 0: none
  bool has_comms = false;
};

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  RawRows read() {
    if (rest_.empty()) fail("an empty file", "a row of actions per rank");
    while (!rest_.empty()) read_row();
    return std::move(raw_);
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, line_, found, expected);
  }

  void read_row() {
    ++line_;
    if (line_ > kMostDevices) fail("one more row", fmt::format("at most {} ranks", kMostDevices));
    raw_.rows.devices.emplace_back();
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view row = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    raw_.rows.devices.back().reserve(count_actions(row));
    std::size_t comma = row.find(',');
    for (; comma != std::string_view::npos; comma = row.find(',')) {
      read_cell(strip(row.substr(0, comma)));
      row.remove_prefix(comma + 1);
    }
    read_cell(strip(row));
    // At once, for a short line without actions would become many times its own size.
    if (raw_.rows.devices.back().empty()) fail("no action", "a stage on every rank");
  }

  void read_cell(std::string_view cell) {
    if (cell.empty()) {
      if (raw_.bubble_line == 0) raw_.bubble_line = line_;
      return;
    }
    if (cell.size() <= kShortCell && ++short_cells_ > kMostShortCells) {
      fail(fmt::format("more than {} cells of at most {} characters", kMostShortCells, kShortCell),
           "every action once");
    }
    const auto full = without_w(cell);
    if (full && raw_.legacy_line == 0) raw_.legacy_line = line_;
    const Action action = parse_action(full.value_or(std::string(cell)), file_, line_);
    for (const Action& part : parts_of(action)) {
      if (!is_pytorch(part)) fail(fmt::format("`{}`", cell), std::string(kCells));
      if (full && part.micro_batches) raw_.legacy_full.insert(key_of(part));
      if (!part.micro_batches || takes_peer(part.kind)) raw_.has_comms = true;
    }
    raw_.rows.devices.back().push_back(action);
  }

  std::string_view rest_;
  const std::string& file_;
  int line_ = 0;
  int short_cells_ = 0;
  RawRows raw_;
};

template <class Visit>
void for_each_part(const Schedule& rows, Visit visit) {
  for (std::size_t row = 0; row < rows.devices.size(); ++row) {
    for (const Action& action : rows.devices[row]) {
      for (const Action& part : parts_of(action)) visit(part, static_cast<int>(row) + 1);
    }
  }
}

// Returns the first line that shows the legacy dialect; none in a file of another dialect.
std::optional<int> find_legacy(const RawRows& raw) {
  if (raw.legacy_line > 0) return raw.legacy_line;
  std::set<WorkKey> weights;
  for_each_part(raw.rows, [&](const Action& part, int) {
    if (part.kind == ActionKind::kBackwardWeight) weights.insert(key_of(part));
  });
  std::optional<int> found;
  for_each_part(raw.rows, [&](const Action& part, int line) {
    if (part.kind != ActionKind::kBackward || weights.count(key_of(part)) == 0) return;
    if (!found) found = line;
  });
  return found;
}

// Renames the actions of a legacy file: there a B that is not written BW is an I.
void convert_legacy(RawRows& raw) {
  const auto convert = [&](Action& part) {
    if (part.kind != ActionKind::kBackward || raw.legacy_full.count(key_of(part)) > 0) return;
    part.kind = ActionKind::kBackwardInput;
  };
  for (std::vector<Action>& row : raw.rows.devices) {
    for (Action& action : row) {
      convert(action);
      if (auto* pair = std::get_if<ActionPair>(&action.detail)) {
        for (Action& half : pair->halves) convert(half);
      }
    }
  }
}

}  // namespace

PytorchSchedule parse_pytorch_csv(std::string_view text, const std::string& file,
                                  LegacyPytorch legacy) {
  RawRows raw = CsvReader(text, file).read();
  if (const auto line = find_legacy(raw)) {
    if (legacy == LegacyPytorch::kRefuse) {
      throw InputError(file, *line, "the legacy names, B for I and BW for B",
                       "the names I, W and B, or a request to convert");
    }
    convert_legacy(raw);
  }
  if (raw.has_comms && raw.bubble_line > 0) {
    throw InputError(file, raw.bubble_line, "an empty cell",
                     "no bubbles in a file with more than compute actions");
  }
  const auto complain = [&](std::size_t rank, const std::string& found,
                            const std::string& expected) {
    throw InputError(file, static_cast<int>(rank) + 1, found, expected);
  };
  PytorchSchedule imported;
  imported.dialect = raw.has_comms ? PytorchDialect::kComputeComms : PytorchDialect::kComputeOnly;
  imported.shape = check_pytorch_rows(raw.rows, imported.dialect, complain);
  if (raw.has_comms) check_message_pairs(raw.rows, imported.shape, complain);
  imported.schedule = std::move(raw.rows);
  return imported;
}

ExplicitSchedule to_explicit_schedule(const PytorchSchedule& imported, int devices) {
  std::vector<DeviceId> device_of_rank;
  for (std::size_t rank = 0; rank < imported.schedule.devices.size(); ++rank) {
    device_of_rank.emplace_back(rank);
  }
  return to_explicit_schedule(imported, device_of_rank, devices);
}

ExplicitSchedule to_explicit_schedule(const PytorchSchedule& imported,
                                      const std::vector<DeviceId>& device_of_rank, int devices) {
  ENSURE(imported.schedule.devices.size() == device_of_rank.size(), "every rank has a device");
  ExplicitSchedule schedule;
  schedule.devices.resize(static_cast<std::size_t>(devices));
  for (std::size_t rank = 0; rank < imported.schedule.devices.size(); ++rank) {
    for (const Action& action : imported.schedule.devices[rank]) {
      if (!is_compute(action.kind)) continue;
      schedule.devices.at(device_of_rank[rank].index()).push_back(action);
    }
  }
  return schedule;
}

}  // namespace frazil
