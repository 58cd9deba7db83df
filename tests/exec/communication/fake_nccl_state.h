#pragma once
// What the fake NCCL (tests/exec/communication/fake_nccl.h) keeps: ends of communicators, each with
// a stream of groups of operations, and who has met whom. One mutex guards it all; functions here
// are called with it locked.

#include <ATen/core/Tensor.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "exec/communication/nccl_table.h"
#include "tests/exec/communication/fake_nccl_faults.h"

namespace frazil::fake {

struct Operation {
  enum class Kind { kSend, kReceive, kAllReduce, kReduceScatter, kAllGather, kBroadcast };
  Kind kind = Kind::kSend;
  at::Tensor from;
  at::Tensor to;
  int peer = -1;  // or root
  bool done = false;

  bool is_message() const { return kind == Kind::kSend || kind == Kind::kReceive; }
};

using Group = std::vector<Operation>;

struct End;

struct Meeting {
  std::vector<End*> ends;  // by rank; null: not come, or gone
  std::size_t come = 0;
};

struct End {
  std::shared_ptr<Meeting> communicator;  // null until its ranks have met
  int gpu = 0;
  int rank = 0;
  std::thread::id thread;
  std::deque<Group> stream;
  std::int64_t issued = 0;
  std::int64_t done = 0;
  int splits = 0;                        // and shrinks
  int not_yet = 1;                       // answers "in progress" before the next other one
  std::optional<std::int64_t> hangs_at;  // the group that never begins
  bool revoked = false;
  bool finalized = false;
  std::string failure;

  bool moves() const { return !stream.empty() && done != hangs_at && failure.empty(); }
};

struct Mark {
  End* end = nullptr;  // none: of work that is done at once
  std::int64_t groups = 0;
};

struct SplitCall {
  End* child = nullptr;
  int color = 0;
  std::pair<int, int> key;  // then the rank in the parent
};

struct State {
  std::mutex mutex;
  std::condition_variable released;
  bool is_released = false;
  FakeNcclFault fault;
  FakeNcclCounts counts;
  std::vector<std::string> violations;
  std::set<End*> ends;
  std::map<std::array<char, 128>, std::shared_ptr<Meeting>> meetings;
  // By the parent, how many splits came before, and how many ranks take part.
  std::map<std::tuple<Meeting*, int, std::size_t>, std::vector<SplitCall>> splits;
  std::map<int, int> groups_of_gpus;
  std::int64_t ids = 0;
};

State& state();

// What the calling thread has put into its group so far.
struct OpenGroup {
  bool is_open = false;
  std::map<End*, Group> operations;
};

OpenGroup& open_group();

void violate(const std::string& sentence);
// Returns the end that a handle of the table stands for; an end that is over is a violation and
// throws, one that another thread serves is a violation.
End& end_of(NcclEnd handle);
bool is_ready(const End& end);
End* add_end(int gpu);
void remove_end(End& end);
// Makes the end one rank of a communicator; two of the same rank fail.
void join(End& end, const std::shared_ptr<Meeting>& communicator, int rank);

}  // namespace frazil::fake
