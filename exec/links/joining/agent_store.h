#pragma once
// Says by the store of torchrun's agent where the first process listens: the agent's own port
// cannot be listened at. The store keeps no secret and proves nothing; it only carries an address.

#include <string>

#include "exec/links/joining/launch_environment.h"
#include "profiles/units.h"

namespace frazil {

// Both connect as clients to the c10d store at `agent`, wait at most `limit`, and throw PeerLost if
// it cannot be reached or (find) nothing has been published under `key` by then.
void publish_in_agent_store(const LaunchAddress& agent, const std::string& key,
                            const std::string& value, Duration limit);
std::string find_in_agent_store(const LaunchAddress& agent, const std::string& key, Duration limit);

}  // namespace frazil
