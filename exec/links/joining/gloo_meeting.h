#pragma once
// Brings the processes of a joined run together by Gloo as well.

#include <memory>
#include <string>

#include "exec/links/gloo_links.h"
#include "exec/links/joining/joined_world.h"

namespace frazil {

// Returns links by Gloo to all other processes. Each process calls it with the same name, one that
// was not used before, while nothing else goes over the control connections. Gloo and the store
// that it needs listen at the addresses by which leader and members reach each other. Throws
// PeerLost if a process goes or does not come by the limit, GlooError if there is no Gloo to be
// had.
std::shared_ptr<GlooLinks> join_by_gloo(const JoinedWorld& world, const std::string& name,
                                        Duration limit, GlooLinkOptions options = {});

}  // namespace frazil
