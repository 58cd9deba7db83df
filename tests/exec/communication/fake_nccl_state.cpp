#include "tests/exec/communication/fake_nccl_state.h"

#include <algorithm>
#include <stdexcept>

namespace frazil::fake {

State& state() {
  static State one;
  return one;
}

OpenGroup& open_group() {
  thread_local OpenGroup group;
  return group;
}

void violate(const std::string& sentence) { state().violations.push_back(sentence); }

End& end_of(NcclEnd handle) {
  End* const end = static_cast<End*>(handle);
  if (!state().ends.contains(end)) {
    violate("an end is used after its end");
    throw std::logic_error("an end is used after its end");
  }
  if (end->thread != std::this_thread::get_id()) {
    violate("GPU " + std::to_string(end->gpu) + " is served by two threads");
  }
  return *end;
}

bool is_ready(const End& end) {
  return end.communicator != nullptr && end.communicator->come == end.communicator->ends.size() &&
         end.not_yet == 0;
}

End* add_end(int gpu) {
  for (const End* other : state().ends) {
    if (other->gpu == gpu && other->thread != std::this_thread::get_id()) {
      violate("GPU " + std::to_string(gpu) + " is served by two threads");
    }
  }
  auto end = std::make_unique<End>();
  end->gpu = gpu;
  end->thread = std::this_thread::get_id();
  state().ends.insert(end.get());
  ++state().counts.communicators;
  return end.release();
}

void remove_end(End& end) {
  if (end.communicator && end.communicator->ends[static_cast<std::size_t>(end.rank)] == &end) {
    end.communicator->ends[static_cast<std::size_t>(end.rank)] = nullptr;
  }
  for (auto& [parent, calls] : state().splits) {
    std::erase_if(calls, [&](const SplitCall& call) { return call.child == &end; });
  }
  state().ends.erase(&end);
  delete &end;
}

void join(End& end, const std::shared_ptr<Meeting>& communicator, int rank) {
  end.communicator = communicator;
  end.rank = rank;
  End*& place = communicator->ends[static_cast<std::size_t>(rank)];
  if (place != nullptr) {
    end.failure = place->failure =
        "invalid argument (two ranks say that they are rank " + std::to_string(rank) + ")";
    return;
  }
  place = &end;
  ++communicator->come;
}

}  // namespace frazil::fake
