#include "exec/devices/step_fault.h"

#include <c10/util/Exception.h>

#include <stdexcept>

namespace frazil {
namespace {

std::string name_place(const StepPlace& place) {
  std::string text = "rank " + std::to_string(place.rank) + ", step " + std::to_string(place.step);
  if (place.action != nullptr) text += ", action " + to_text(*place.action);
  return text + ": ";
}

// True for torch's failed allocations. Its allocator of host memory knows no exception of its own.
bool is_out_of_memory(const c10::Error& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         std::string(error.what_without_backtrace()).find("DefaultCPUAllocator: ") !=
             std::string::npos;
}

// Returns the first paragraph: torch explains itself in paragraphs, and errors of CUDA in lines.
std::string first_paragraph(const std::string& text) {
  const bool is_of_cuda = text.rfind("CUDA error", 0) == 0;
  const std::size_t end = text.find(is_of_cuda ? "\n" : "\n\n");
  return to_one_line(end == std::string::npos ? text : text.substr(0, end));
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
    const std::string sentence = where + first_paragraph(error.what_without_backtrace());
    if (is_out_of_memory(error)) throw OutOfMemory(sentence);
    throw std::runtime_error(sentence);
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
    const std::string sentence = first_paragraph(error.what_without_backtrace());
    if (is_out_of_memory(error)) throw OutOfMemory("out of memory: " + sentence);
    throw std::runtime_error(sentence);
  }
}

}  // namespace frazil
