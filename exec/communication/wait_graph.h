#pragma once
// Holds who waits for whom among the ranks of a world at one moment, and tells that a wait never
// ends (a deadlock), or why it has lasted so long. Knows no threads; a world takes the snapshot.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "exec/communication/communication_error.h"
#include "exec/links/message_tag.h"
#include "profiles/units.h"

namespace frazil {

// A wait, which ends when all `peers` have done their part.
struct Wait {
  std::optional<Tag> message;  // none: a barrier
  std::vector<int> peers;      // the sender, or the ranks still missing at the barrier
};

// The `finished` of a rank that has left for good.
inline constexpr std::int64_t kEveryJob = std::numeric_limits<std::int64_t>::max();

struct WaitGraph {
  std::vector<std::optional<Wait>> waits;  // by rank; none: the rank runs
  std::vector<std::int64_t> finished;      // by rank: jobs whose part it has done
};

// Returns the fault of a wait of `rank` that can never end, through other ranks or directly: in a
// ring back to itself, or on a rank that has left. None if the wait may end.
std::optional<CommunicationFault> find_dead_wait(const WaitGraph& graph, int rank);

// Returns the fault of a wait of `rank` that is over its deadline. It names the waits in between as
// far as a rank that runs.
CommunicationFault make_expiry(const WaitGraph& graph, int rank, Duration waited);

}  // namespace frazil
