#pragma once
// StreamOrder watches what is enqueued to the streams of the tests' plug-in: every operation of
// torch, with the stream of its thread and the memory that it reads and writes, and the events that
// are recorded and awaited. It finds what a GPU could do in another order than the host has said,
// although one may not come before the other:
// - a read that nothing orders behind the write, or a write behind the reads and the write before;
// - memory used by a stream that the allocator has not been told of;
// - a read by the host of what it has not waited for, and work left behind at the end of a step.
// Times are vector clocks: a stream knows of another what it has awaited, or what the host had seen
// ended when it enqueued.

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/exec/devices/fake_accelerator.h"

namespace frazil {

// One at a time; it begins with no work under way.
class StreamOrder {
 public:
  // What the watcher is told of, so that a test can plant a fault.
  struct Sight {
    bool awaits = true;
    bool marks = true;
    bool host_waits = true;
  };

  explicit StreamOrder(const std::string& plugin);
  StreamOrder(const std::string& plugin, Sight sight);
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  // All threads have met: each knows from here on what the others have seen.
  void end_step();
  // Returns the faults found, each once.
  std::vector<std::string> faults() const;
  // How many reads were of memory that another stream had written.
  int reads_across() const;
  // How many numbers the host has asked torch for: each makes it wait.
  int items() const;

 private:
  using Clock = std::map<int, int>;  // by stream: its operations so far
  using Memory = const void*;

  // The bytes of a tensor, as far as they may lie in its storage.
  struct Part {
    c10::Storage storage;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  struct Use {
    int stream = -1;
    int time = 0;
    std::string operation;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  struct State {
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> alive;  // keeps the address
    int home = -1;
    bool is_on_host = false;
    std::vector<Use> writes;  // of parts that no later one covers
    std::vector<Use> reads;   // since they were written
    std::set<int> marked;
  };
  struct Operation : at::ObserverContext {
    std::string name;
    std::vector<Part> reads;
    std::vector<Part> writes;
  };

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function);
  static void end(const at::RecordFunction& function, at::ObserverContext* context);
  void note(const FakeCall& call);
  static void collect(const c10::IValue& value, std::vector<Part>& into);
  static bool holds(const std::vector<Part>& some, const c10::Storage& one);
  void run(const Operation& operation, const std::vector<Part>& outputs);
  State& state_of(const c10::Storage& storage);
  bool is_known(const c10::Storage& storage) const { return states_.contains(key(storage)); }
  static Memory key(const c10::Storage& storage) { return storage.unsafeGetStorageImpl(); }
  void check(const std::vector<Use>& earlier, const Use& now, const std::string& what);
  void check_memory(const Use& use, const State& state);
  void read(const Use& use, State& state);
  void write(const Use& use, State& state);
  void check_host(const State& state, const Operation& operation);
  static void join(Clock& into, const Clock& from);

  static StreamOrder* current_;

  FakeAccelerator& fake_;
  int (*current_stream_)();
  Sight sight_;
  at::CallbackHandle callback_ = 0;
  mutable std::mutex mutex_;  // guards all below
  std::map<Memory, State> states_;
  std::map<int, Clock> streams_;
  std::map<int, Clock> events_;
  std::map<std::thread::id, Clock> hosts_;
  std::map<std::thread::id, FakeCall::Kind> copying_;
  std::set<std::string> faults_;
  int reads_across_ = 0;
  int items_ = 0;
};

}  // namespace frazil
