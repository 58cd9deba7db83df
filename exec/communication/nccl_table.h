#pragma once
// A plug-in for NCCL gives the executor a table of plain functions, so that the program itself
// links neither NCCL nor CUDA. The plug-in (exec/communication/nccl) exports one C function that
// returns its table; tests have a table of their own. What a rank holds of a communicator (its end)
// has a stream of its own. All functions that take an end, the groups and make_id() are called by
// one thread per GPU. None of them waits for another rank: what is under way is asked for by
// poll(). Functions throw std::runtime_error with one sentence.

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace frazil {

// Must be raised with every change of what is below.
inline constexpr int kNcclVersion = 1;
inline constexpr const char* kNcclSymbol = "frazil_nccl";

// Names a communicator to be; the ranks that bring the same one meet.
struct NcclId {
  std::array<char, 128> bytes{};
};

struct NcclPlace {
  int gpu = 0;
  int ranks = 2;
  int rank = 0;
  int most_blocks = 0;  // of a kernel, taken from what computes; 0: as NCCL likes
  // Calls wait until NCCL has done its part of them. Only such communicators give estimates.
  bool blocks = false;
};

enum class NcclState : std::uint8_t { kReady, kInProgress, kFailed };

struct NcclAnswer {
  NcclState state = NcclState::kReady;
  std::string why;  // of kFailed
};

using NcclEnd = void*;   // one rank's end of a communicator
using NcclMark = void*;  // a moment in a stream, until it is forgotten

struct NcclTable {
  int version = kNcclVersion;  // first, so that every version can read it

  int (*library_version)() = nullptr;  // 22809: 2.28.9
  // True for tensors that lie where NCCL sends from; all other tensors travel otherwise.
  bool (*carries)(const at::Tensor& tensor) = nullptr;

  // Communicators. init(), split(), shrink(), revoke(), finalize() and the end of a group are under
  // way until poll() answers kReady; until then the end takes poll() and abort() only.
  NcclId (*make_id)() = nullptr;
  NcclEnd (*init)(const NcclId& id, const NcclPlace& place) = nullptr;
  NcclAnswer (*poll)(NcclEnd end) = nullptr;
  // All ranks call it; ranks of equal color (0 or more) meet, ordered by key.
  NcclEnd (*split)(NcclEnd end, int color, int key) = nullptr;
  // All ranks but the excluded ones call it; `aborts` ends operations that are under way.
  NcclEnd (*shrink)(NcclEnd end, const std::vector<int>& excluded, bool aborts) = nullptr;
  // Ends what is under way; the end then takes split(), shrink() and destroy() only.
  void (*revoke)(NcclEnd end) = nullptr;
  void (*finalize)(NcclEnd end) = nullptr;
  void (*destroy)(NcclEnd end) = nullptr;  // after finalize() or revoke(); frees the end
  void (*abort)(NcclEnd end) = nullptr;    // at any time; frees the end

  // Operations on contiguous tensors that carries() takes. Each stands between the start and the
  // end of a group, goes to the end's stream when the group ends, and is done when a mark after it
  // is. Operations of a group progress together; messages to one peer meet in their order.
  void (*group_start)() = nullptr;
  void (*group_end)() = nullptr;
  double (*simulate_end)() = nullptr;  // ends a group without doing it; NCCL's estimate, in seconds
  void (*send)(NcclEnd end, const at::Tensor& tensor, int peer) = nullptr;
  void (*receive)(NcclEnd end, const at::Tensor& tensor, int peer) = nullptr;
  void (*all_reduce)(NcclEnd end, const at::Tensor& tensor) = nullptr;  // sums, in place
  // `all` has the elements of `own` once per rank.
  void (*reduce_scatter)(NcclEnd end, const at::Tensor& all, const at::Tensor& own) = nullptr;
  void (*all_gather)(NcclEnd end, const at::Tensor& own, const at::Tensor& all) = nullptr;
  void (*broadcast)(NcclEnd end, const at::Tensor& tensor, int root) = nullptr;

  // Streams. mark_work() and join() are called by the thread that computes, is_done() and forget()
  // by any thread.
  NcclMark (*mark_work)(int gpu) = nullptr;  // after what the calling thread's stream was given
  NcclMark (*mark)(NcclEnd end) = nullptr;   // after what the end's stream was given
  void (*follow)(NcclEnd end, NcclMark mark) = nullptr;  // the end's stream goes on after the mark
  void (*join)(int gpu, NcclMark mark) = nullptr;        // so does the calling thread's stream
  bool (*is_done)(NcclMark mark) = nullptr;              // never waits; throws the GPU's error
  void (*forget)(NcclMark mark) = nullptr;
};

// The type of the exported function.
using NcclFunction = const NcclTable* (*)();

}  // namespace frazil
