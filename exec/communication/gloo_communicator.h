#pragma once
// A world over processes whose frames go by c10d's ProcessGroupGloo (exec/links/gloo_group.h),
// which PyTorch's users know; all else is as over links of our own (exec/communication/
// process_communicator.h), in the same words. Slower than these: each message waits for nobody, but
// passes through two threads.

#include <memory>
#include <vector>

#include "exec/communication/process_communicator.h"
#include "exec/links/gloo_links.h"

namespace frazil {

// As make_process_communicators().
std::vector<std::unique_ptr<Communicator>> make_gloo_communicators(
    std::shared_ptr<GlooLinks> links, std::uint32_t epoch, const ProcessPlace& place,
    const CommunicatorOptions& options = {});

}  // namespace frazil
