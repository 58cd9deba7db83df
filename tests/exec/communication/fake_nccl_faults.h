#pragma once
// What a test asks of the fake NCCL (tests/exec/communication/fake_nccl.h) and what that counts.

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

}  // namespace frazil
