#include "exec/run/jobs/member_faults.h"

#include <new>
#include <stdexcept>

#include "exec/devices/step_fault.h"
#include "profiles/error.h"

namespace frazil {
namespace {

FaultKind kind_of_current() {
  try {
    throw;
  } catch (const StepUndone&) {
    return FaultKind::kUndone;
  } catch (const DeviceLost&) {
    return FaultKind::kDeviceLost;
  } catch (const PeerLost&) {
    return FaultKind::kPeerLost;
  } catch (const InputError&) {
    return FaultKind::kBadInput;
  } catch (const InfeasibleError&) {
    return FaultKind::kInfeasible;
  } catch (const std::bad_alloc&) {
    return FaultKind::kOutOfMemory;
  } catch (const std::logic_error&) {
    return FaultKind::kBug;
  } catch (...) {
    return FaultKind::kOther;
  }
}

// A consequence tells of another process's fault.
bool is_consequence(FaultKind kind) {
  return kind == FaultKind::kPeerLost || kind == FaultKind::kUndone;
}

[[noreturn]] void throw_as(FaultKind kind, const std::string& sentence) {
  switch (kind) {
    case FaultKind::kBug:
      throw std::logic_error(sentence);
    case FaultKind::kBadInput:
      throw InputError("a member of the run", 0, sentence, "what the leader has");
    case FaultKind::kInfeasible:
      throw InfeasibleError(sentence);
    case FaultKind::kOutOfMemory:
      throw OutOfMemory(sentence);
    case FaultKind::kDeviceLost:
      throw DeviceLost(sentence);
    case FaultKind::kPeerLost:
    case FaultKind::kUndone:
      throw PeerLost(sentence);
    case FaultKind::kOther:
      break;
  }
  throw std::runtime_error(sentence);
}

}  // namespace

FailureMessage tell_failure(std::uint64_t number) {
  FailureMessage failure{.number = number, .kind = kind_of_current(), .sentence = {}};
  try {
    throw;
  } catch (const std::exception& error) {
    failure.sentence = error.what();
  } catch (...) {
    failure.sentence = "a member failed for an unknown reason";
  }
  return failure;
}

void throw_explaining(const std::exception_ptr& own, const std::vector<MemberReply>& replies,
                      const std::optional<std::string>& cause, bool has_lost) {
  if (has_lost && cause) throw StepUndone(*cause);
  if (own) {
    try {
      std::rethrow_exception(own);
    } catch (...) {
      if (!is_consequence(kind_of_current())) throw;
    }
  }
  for (const MemberReply& reply : replies) {
    if (reply.failure && !is_consequence(reply.failure->kind)) {
      throw_as(reply.failure->kind, reply.failure->sentence);
    }
  }
  if (cause) throw PeerLost(*cause);
  std::rethrow_exception(own);
}

std::string name_ranks(const PoolPlace& place, int process) {
  std::vector<std::string> ranks;
  for (std::size_t d = 0; d < place.process_of.size(); ++d) {
    if (place.process_of[d] == process) ranks.push_back(std::to_string(d));
  }
  if (ranks.empty()) return "process " + std::to_string(process);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += ranks[i];
  }
  return text;
}

}  // namespace frazil
