#include "profiles/import/layer_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "profiles/error.h"
#include "profiles/import/decimal.h"
#include "profiles/import/file_lines.h"

namespace frazil {
namespace {

struct Unit {
  std::string_view name;
  // The unit is 10^decimals x `times` of the smallest unit (ns or byte).
  int decimals;
  std::int64_t times;
};

constexpr std::array kTimeUnits = {Unit{"s", 9, 1}, Unit{"ms", 6, 1}, Unit{"us", 3, 1},
                                   Unit{"ns", 0, 1}};
constexpr std::array kByteUnits = {Unit{"bytes", 0, 1},       Unit{"kB", 3, 1},
                                   Unit{"MB", 6, 1},          Unit{"GB", 9, 1},
                                   Unit{"KiB", 0, 1LL << 10}, Unit{"MiB", 0, 1LL << 20},
                                   Unit{"GiB", 0, 1LL << 30}};
constexpr std::array kTimeColumns = {"forward", "backward", "backward_input", "backward_weight",
                                     "update"};
constexpr std::array kByteColumns = {"activation", "parameter", "optimizer_state", "stash"};
constexpr std::array kTextColumns = {"name", "block"};
constexpr const char* kNone = "none, for the table has no such column";
constexpr const char* kColumnForm =
    "name, block, forward_<t>, backward_<t>, backward_input_<t>, backward_weight_<t>, update_<t>, "
    "activation_<b>, parameter_<b>, optimizer_state_<b> or stash_<b> (<t>: s ms us ns; <b>: bytes "
    "kB MB GB KiB MiB GiB)";

struct Column {
  std::string quantity;  // "forward"
  std::string title;     // "forward_ms"
  std::optional<Unit> unit;
};

// Walks the cells of a line, one at a time: a line may hold far more of them than a table has
// columns.
class CellWalk {
 public:
  explicit CellWalk(std::string_view line) : rest_(line) {}

  bool is_at_end() const { return is_at_end_; }

  // Returns the next cell; nothing when a quote is not closed or text follows a closed quote.
  std::optional<std::string> next() {
    rest_ = trim(rest_);
    std::string cell;
    if (rest_.starts_with('"')) {
      if (!read_quoted(cell)) return std::nullopt;
    } else {
      const std::size_t end = std::min(rest_.find(','), rest_.size());
      cell = trim(rest_.substr(0, end));
      rest_.remove_prefix(end);
    }
    is_at_end_ = rest_.empty();
    if (!is_at_end_) rest_.remove_prefix(1);
    return cell;
  }

 private:
  bool read_quoted(std::string& cell) {
    rest_.remove_prefix(1);
    while (true) {
      const std::size_t end = rest_.find('"');
      if (end == std::string_view::npos) return false;
      cell += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (!rest_.starts_with('"')) break;
      cell += '"';
      rest_.remove_prefix(1);
    }
    rest_ = trim(rest_);
    return rest_.empty() || rest_.front() == ',';
  }

  std::string_view rest_;
  bool is_at_end_ = false;
};

template <class Units, class Names>
std::optional<Column> read_title(const std::string& title, const Units& units, const Names& names) {
  for (const char* const name : names) {
    const std::string begin = std::string(name) + "_";
    if (!title.starts_with(begin)) continue;
    for (const Unit& unit : units) {
      if (title.substr(begin.size()) == unit.name) return Column{name, title, unit};
    }
  }
  return std::nullopt;
}

class CsvReader {
 public:
  CsvReader(const std::string& file, const ImportOptions& options)
      : file_(file), options_(options) {}

  ImportedProfile read(std::string_view text) {
    FileLines lines(text, file_);
    auto line = lines.next();
    line_ = line->number;
    read_titles(line->text);
    ModelProfile& profile = imported_.profile;
    profile.model = options_.model;
    profile.provenance["source"] = "CSV of layers";
    while ((line = lines.next())) {
      line_ = line->number;
      if (profile.layers.size() == kMostImportedLayers) {
        fail("one more layer", fmt::format("at most {}", kMostImportedLayers));
      }
      read_layer(line->text);
    }
    if (profile.layers.empty()) fail("a header alone", "a line for each layer");
    profile.layers.back().has_loss = true;
    if (find("backward") != nullptr) split_by_rule(imported_);
    doubt("parameter", DoubtedFact::kParameters, DoubtKind::kDefault, kNone);
    doubt("optimizer_state", DoubtedFact::kOptimizerState, DoubtKind::kDefault, kNone);
    doubt("update", DoubtedFact::kUpdate, DoubtKind::kDefault, kNone);
    doubt("stash", DoubtedFact::kStash, DoubtKind::kLowerBound, "each layer's input alone");
    note("sizes of no whole number of bytes are rounded up", is_size_rounded_);
    note("activations of no whole number of bytes a sample are rounded up", is_rounded_);
    validate(profile, file_);
    return std::move(imported_);
  }

 private:
  using Cells = std::vector<std::string>;

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, line_, found, expected);
  }
  void note(const char* text, bool holds) {
    if (holds) imported_.notes.emplace_back(text);
  }

  // Notes a doubt about what the table has no column for.
  void doubt(const char* column, DoubtedFact fact, DoubtKind kind, const char* reason) {
    if (find(column) == nullptr) note_doubt(imported_.profile.doubts, {fact, kind, reason});
  }

  std::string next_cell(CellWalk& cells, std::string_view line) const {
    auto cell = cells.next();
    if (!cell) fail(quote(line), "each quote closed before a comma or the end");
    return std::move(*cell);
  }

  // Returns as many cells as the table has columns. Throws for fewer and for more.
  Cells split(std::string_view line) const {
    Cells cells;
    std::size_t count = 0;
    for (CellWalk walk(line); !walk.is_at_end(); ++count) {
      std::string cell = next_cell(walk, line);
      if (count < columns_.size()) cells.push_back(std::move(cell));
    }
    if (count != columns_.size()) {
      fail(fmt::format("{} cells", count), fmt::format("{}, as the header has", columns_.size()));
    }
    return cells;
  }

  const Column* find(std::string_view quantity) const {
    const auto place = std::find_if(columns_.begin(), columns_.end(), [&](const Column& column) {
      return column.quantity == quantity;
    });
    return place == columns_.end() ? nullptr : &*place;
  }

  void read_titles(std::string_view line) {
    for (CellWalk walk(line); !walk.is_at_end();) {
      const std::string title = next_cell(walk, line);
      std::optional<Column> column = read_title(title, kTimeUnits, kTimeColumns);
      if (!column) column = read_title(title, kByteUnits, kByteColumns);
      const auto* const text = std::find(kTextColumns.begin(), kTextColumns.end(), title);
      if (!column && text != kTextColumns.end()) column = Column{title, title, std::nullopt};
      if (!column) fail(fmt::format("the column {}", quote(title)), kColumnForm);
      if (const Column* const other = find(column->quantity)) {
        fail(fmt::format("the column {} beside {}", quote(title), quote(other->title)),
             "each quantity once");
      }
      columns_.push_back(std::move(*column));
    }
    const auto need = [&](const char* quantity) {
      if (find(quantity) == nullptr) {
        fail(fmt::format("no column of `{}`", quantity), kColumnForm);
      }
    };
    for (const char* const quantity : {"name", "forward", "activation"}) need(quantity);
    const bool is_split = find("backward_input") != nullptr || find("backward_weight") != nullptr;
    if (is_split && find("backward") != nullptr) {
      fail("a whole backward beside its parts", "one or the other");
    }
    if (!is_split) return need("backward");
    need("backward_input");
    need("backward_weight");
  }

  std::int64_t quantity_or_zero(const char* name, const Cells& cells) {
    const Column* const column = find(name);
    if (column == nullptr) return 0;
    const std::string& cell = cells[static_cast<std::size_t>(column - columns_.data())];
    auto value = scale_decimal(cell, column->unit->decimals, Rounding::kExact);
    const std::int64_t times = column->unit->times;
    if (value && *value > kLargestQuantity / times) value.reset();
    if (!value && times > 1) {
      value = scale_binary(cell, times);
    } else if (value) {
      *value *= times;
    }
    if (!value) {
      const bool is_time = std::find(kTimeColumns.begin(), kTimeColumns.end(), column->quantity) !=
                           kTimeColumns.end();
      fail(fmt::format("{} {}", column->title, quote(cell)),
           fmt::format("{} that are a whole number of {} from 0 to {}", column->unit->name,
                       is_time ? "ns" : "bytes", kLargestQuantity));
    }
    return *value;
  }

  // Rounds up, as few decimals of a binary unit are whole bytes.
  std::optional<std::int64_t> scale_binary(const std::string& cell, std::int64_t times) {
    constexpr int kDecimals = 6;
    constexpr std::int64_t kPlaces = 1'000'000;
    const auto scaled = scale_decimal(cell, kDecimals, Rounding::kExact);
    if (!scaled || *scaled > kLargestQuantity / times) return std::nullopt;
    const bool is_rounded = *scaled * times % kPlaces != 0;
    is_size_rounded_ = is_size_rounded_ || is_rounded;
    return *scaled * times / kPlaces + (is_rounded ? 1 : 0);
  }

  const std::string& text_of(const char* name, const Cells& cells) const {
    const Column* const column = find(name);
    const std::string& cell = cells[static_cast<std::size_t>(column - columns_.data())];
    if (cell.empty()) fail(fmt::format("an empty {}", name), "a name");
    return cell;
  }

  void read_layer(std::string_view line) {
    const Cells cells = split(line);
    ModelProfile& profile = imported_.profile;
    Layer layer;
    layer.name = text_of("name", cells);
    if (!names_.insert(layer.name).second) {
      fail(fmt::format("the layer {} again", quote(layer.name)), "names that differ");
    }
    const auto time = [&](const char* name) { return Duration{quantity_or_zero(name, cells)}; };
    const auto bytes = [&](const char* name) { return Bytes{quantity_or_zero(name, cells)}; };
    layer.parameters = bytes("parameter");
    layer.optimizer_state = bytes("optimizer_state");
    layer.update = time("update");
    CostSample cost;
    cost.micro_batch_size = options_.micro_batch_size;
    cost.forward = cost.forward_frozen = time("forward");
    cost.backward_input = time(find("backward") != nullptr ? "backward" : "backward_input");
    cost.backward_weight = cost.backward_weight_alone = time("backward_weight");
    cost.stash = find("stash") != nullptr ? bytes("stash") : before_;
    layer.costs = {cost};
    add_edge();
    set_block(layer, find("block") == nullptr ? layer.name : text_of("block", cells));
    before_ = bytes("activation");
    profile.layers.push_back(std::move(layer));
  }

  void set_block(Layer& layer, const std::string& block) {
    std::vector<std::string>& blocks = imported_.profile.blocks;
    if (blocks.empty() || blocks.back() != block) {
      if (!block_names_.insert(block).second) {
        fail(fmt::format("the block {} again", quote(block)), "blocks of consecutive layers");
      }
      blocks.push_back(block);
    }
    layer.block = BlockId{blocks.size() - 1};
  }

  // Adds the edge from the layer before to the layer that is read.
  void add_edge() {
    const std::size_t to = imported_.profile.layers.size();
    if (to == 0) return;
    const std::int64_t samples = options_.micro_batch_size;
    const bool is_rounded = before_.count % samples != 0;
    is_rounded_ = is_rounded_ || is_rounded;
    const Bytes bytes{before_.count / samples + (is_rounded ? 1 : 0)};
    imported_.profile.edges.push_back({.from = LayerId{to - 1},
                                       .to = LayerId{to},
                                       .kind = {},
                                       .tensor_bytes_per_sample = {bytes}});
  }

  const std::string& file_;
  const ImportOptions& options_;
  int line_ = 1;
  std::vector<Column> columns_;
  std::set<std::string> names_;
  std::set<std::string> block_names_;
  Bytes before_;  // activation of the layer before
  bool is_size_rounded_ = false;
  bool is_rounded_ = false;
  ImportedProfile imported_;
};

}  // namespace

ImportedProfile parse_layer_csv(std::string_view text, const std::string& file,
                                const ImportOptions& options) {
  return CsvReader(file, options).read(text);
}

}  // namespace frazil
