// Mutates texts of comma-separated cells: in half of libFuzzer's changes the cells stay whole.
// Cells trade places, move, are copied or left out, and their numbers change. Changes of single
// bytes seldom make one good file from another.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace frazil {
namespace {

struct Cell {
  std::string text;
  char end = ',';  // or the line's end
};

// Splits a text into its cells and the rest behind the last comma or line end.
std::pair<std::vector<Cell>, std::string> split(std::string_view text) {
  std::vector<Cell> cells;
  while (true) {
    const std::size_t end = text.find_first_of(",\n");
    if (end == std::string_view::npos) return {std::move(cells), std::string(text)};
    cells.push_back({std::string(text.substr(0, end)), text[end]});
    text.remove_prefix(end + 1);
  }
}

class CellMutator {
 public:
  explicit CellMutator(unsigned seed) : random_(seed) {}

  void change(std::vector<Cell>& cells) {
    Cell& cell = cells[below(cells.size())];
    Cell& other = cells[below(cells.size())];
    switch (below(7)) {
      case 0:
        return std::swap(cell.text, other.text);
      case 1:
        return std::swap(cell.text, (&cell == &cells.front() ? &cell + 1 : &cell - 1)->text);
      case 2:
        cell.text = other.text;
        return;
      case 3:
        return move(cells);
      case 4:
        take_out(cells);
        return;
      default:
        change_number(cell.text);
    }
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  // Takes a random cell out. A cell that ends its line hands the line end on to the cell before it.
  Cell take_out(std::vector<Cell>& cells) {
    const std::size_t at = below(cells.size());
    Cell cell = std::move(cells[at]);
    cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(at));
    if (cell.end == '\n' && at > 0) cells[at - 1].end = std::exchange(cell.end, ',');
    return cell;
  }

  void move(std::vector<Cell>& cells) {
    Cell cell = take_out(cells);
    const std::size_t at = below(cells.size() + 1);
    cells.insert(cells.begin() + static_cast<std::ptrdiff_t>(at), std::move(cell));
  }

  void change_number(std::string& text) {
    constexpr std::string_view kDigits = "0123456789";
    constexpr std::array kEdges = {"2147483647",          "2147483648",
                                   "4611686018427387903", "4611686018427387904",
                                   "9223372036854775807", "99999999999999999999"};
    const std::size_t begin = text.find_first_of(kDigits);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    if (below(8) == 0) {
      text.replace(begin, end - begin, kEdges[below(kEdges.size())]);
    } else {
      text[end - 1] = kDigits[below(below(2) == 0 ? 4 : kDigits.size())];
    }
  }

  std::minstd_rand random_;
};

std::string change_cells(std::string_view text, unsigned seed) {
  auto [cells, rest] = split(text);
  if (cells.size() >= 2) CellMutator(seed).change(cells);
  std::string changed;
  for (const Cell& cell : cells) changed += cell.text + cell.end;
  return changed + rest;
}

}  // namespace
}  // namespace frazil

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string changed =
      frazil::change_cells({reinterpret_cast<const char*>(data), size}, seed);
  const std::size_t kept = std::min(changed.size(), most);
  std::copy_n(changed.begin(), kept, data);
  return kept;
}
