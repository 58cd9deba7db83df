#pragma once
// Worlds by Gloo whose processes are all this one, as process_worlds.h has them over links of our
// own.

#include "exec/communication/gloo_communicator.h"
#include "tests/exec/communication/process_worlds.h"

namespace frazil {

using AllGlooLinks = std::vector<std::shared_ptr<GlooLinks>>;  // by process

AllGlooLinks make_gloo_links(int processes);

// As make_ranks().
Ranks make_gloo_ranks(const AllGlooLinks& links, std::uint32_t epoch,
                      const std::vector<int>& process_of_rank,
                      const CommunicatorOptions& options = {});

}  // namespace frazil
