#pragma once
// A table of NCCL without a GPU: payload in host memory, and the rules of the real one where a
// mistake would hang or corrupt. Every end has a stream of groups, of which the first alone is
// under way; messages meet in their order; a send holds its stream up until its receive is under
// way; operations of one group progress together. What breaks a rule is noted as a violation. Its
// state is one for the process; a test begins with reset(), when no world lives.

#include <string>
#include <vector>

#include "exec/communication/nccl_table.h"
#include "tests/exec/communication/fake_nccl_faults.h"

namespace frazil {

// Forgets everything but the table. Requires: no end lives.
void reset_fake_nccl(const FakeNcclFault& fault = {});
FakeNcclCounts fake_nccl_counts();
// Returns what has broken a rule: "GPU 0 is served by two threads".
std::vector<std::string> fake_nccl_violations();
void release_fake_nccl();  // lets a stuck call return

const NcclTable& fake_nccl();

}  // namespace frazil
