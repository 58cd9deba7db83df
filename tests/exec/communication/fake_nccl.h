#pragma once
// A table of NCCL without a GPU: payload in host memory, and the rules of the real one where a
// mistake would hang or corrupt. Every end has a stream of groups, of which the first alone is
// under way; messages meet in their order; a send holds its stream up until its receive is under
// way; operations of one group progress together. What breaks a rule is noted as a violation. Its
// state is one for the process; a test begins with reset(), when no world lives.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "exec/communication/nccl_table.h"

namespace frazil {

struct FakeNcclFault {
  enum class Kind {
    kNone,
    kNeverReady,  // communicators that the GPU takes part in never come about
    kWrongRank,   // the GPU says that it is rank 0 of each
    kError,       // the end of a group fails, as when NCCL has lost a peer
    kHang,        // the group and all after it never begin
    kStuckCall,   // the call that ends the group does not return before release()
  };
  Kind kind = Kind::kNone;
  int gpu = 0;
  int group = 0;  // of that GPU, counted from 0
};

struct FakeNcclCounts {
  int communicators = 0;  // ends made
  int aborted = 0;
  int destroyed = 0;
  int live_ends = 0;
  int live_marks = 0;
  int groups = 0;
  int widest_group = 0;  // operations
  int all_reduces = 0;
};

// Forgets everything but the table. Requires: no end lives.
void reset_fake_nccl(const FakeNcclFault& fault = {});
FakeNcclCounts fake_nccl_counts();
// Returns what has broken a rule: "GPU 0 is served by two threads".
std::vector<std::string> fake_nccl_violations();
void release_fake_nccl();  // lets a stuck call return

const NcclTable& fake_nccl();

}  // namespace frazil
