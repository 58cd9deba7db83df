#include "exec/devices/step_fault.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <system_error>

#include "profiles/quantity_text.h"

namespace frazil {
namespace {

std::string name_place(const StepPlace& place) {
  std::string text = "rank " + std::to_string(place.rank) + ", step " + std::to_string(place.step);
  if (place.action != nullptr) text += ", action " + to_text(*place.action);
  return text + ": ";
}

// Returns the first paragraph: torch explains itself in paragraphs, and errors of CUDA in lines.
std::string first_paragraph(const std::string& text) {
  const bool is_of_cuda = text.rfind("CUDA error", 0) == 0;
  const std::size_t end = text.find(is_of_cuda ? "\n" : "\n\n");
  return to_one_line(end == std::string::npos ? text : text.substr(0, end));
}

// Returns what stands behind `words` in the text up to `end`, or "".
std::string text_behind(const std::string& text, const std::string& words, const std::string& end) {
  const std::size_t place = text.find(words);
  if (place == std::string::npos) return "";
  const std::size_t begin = place + words.size();
  return text.substr(begin, text.find_first_of(end, begin) - begin);
}

// Returns a sentence for torch's failed allocations, else "". Its allocator of host memory knows no
// exception of its own, and a tensor whose bytes cannot even be counted is another one.
std::string tell_allocation(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (text.find("DefaultCPUAllocator: ") != std::string::npos) {
    const std::string bytes = text_behind(text, "you tried to allocate ", " ");
    std::int64_t count = 0;
    const auto [stop, failed] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), count);
    if (failed != std::errc() || stop != bytes.data() + bytes.size()) return "out of memory";
    return "out of memory: a tensor of " + bytes + " bytes (" + to_text(Bytes{count}) +
           ") cannot be allocated";
  }
  if (text.find("Storage size calculation overflowed") != std::string::npos) {
    return "out of memory: a tensor of the sizes [" + text_behind(text, "sizes=[", "]") +
           "] has more bytes than can be counted";
  }
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) == nullptr) return "";
  return "out of memory: " + first_paragraph(text);
}

}  // namespace

void rethrow_at(const StepPlace& place) {
  const std::string where = name_place(place);
  try {
    throw;
  } catch (const DeviceLost& error) {
    throw DeviceLost(where + error.what());
  } catch (const PeerLost&) {
    throw;
  } catch (const InputError&) {
    throw;
  } catch (const InfeasibleError& error) {
    throw InfeasibleError(where + error.what());
  } catch (const c10::Error& error) {
    const std::string allocation = tell_allocation(error);
    if (!allocation.empty()) throw OutOfMemory(where + allocation);
    throw std::runtime_error(where + first_paragraph(error.what_without_backtrace()));
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(where + error.what());
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(where + "out of memory");
  } catch (const std::logic_error& error) {
    throw std::logic_error(where + error.what());
  } catch (const std::exception& error) {
    throw std::runtime_error(where + to_one_line(error.what()));
  } catch (...) {
    throw std::runtime_error(where + "an unknown exception");
  }
}

void rethrow_told() {
  try {
    throw;
  } catch (const c10::Error& error) {
    const std::string allocation = tell_allocation(error);
    if (!allocation.empty()) throw OutOfMemory(allocation);
    throw std::runtime_error(first_paragraph(error.what_without_backtrace()));
  }
}

}  // namespace frazil
