#include "tests/exec/devices/stream_order.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <utility>

namespace frazil {
namespace {

// Tells which arguments of an operation it writes to.
std::vector<bool> written_arguments(const at::RecordFunction& function) {
  std::vector<bool> written;
  const auto name = function.operator_name();
  if (!name) return written;
  const auto handle = c10::Dispatcher::singleton().findSchema(*name);
  if (!handle) return written;
  for (const c10::Argument& argument : handle->schema().arguments()) {
    written.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
  }
  return written;
}

// A fused optimizer of cores reads its step from a tensor, that of a GPU does not.
bool is_fused_update(const std::string& name) { return name.starts_with("aten::_fused_"); }

thread_local int fused_updates = 0;  // under way in this thread

// The bytes from a tensor's first element to its last.
std::pair<std::uintptr_t, std::uintptr_t> find_bytes(const at::Tensor& tensor) {
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.storage().data()) +
                     static_cast<std::uintptr_t>(tensor.storage_offset()) * tensor.itemsize();
  if (tensor.numel() == 0) return {begin, begin};
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    last += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return {begin, begin + static_cast<std::uintptr_t>(last + 1) * tensor.itemsize()};
}

}  // namespace

StreamOrder* StreamOrder::current_ = nullptr;

void StreamOrder::collect(const c10::IValue& value, std::vector<Part>& into) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || !tensor.has_storage()) return;
    const auto [begin, end] = find_bytes(tensor);
    into.push_back({tensor.storage(), begin, end});
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) collect(element, into);
  }
}

bool StreamOrder::holds(const std::vector<Part>& some, const c10::Storage& one) {
  return std::any_of(some.begin(), some.end(),
                     [&](const Part& part) { return key(part.storage) == key(one); });
}

StreamOrder::StreamOrder(const std::string& plugin) : StreamOrder(plugin, Sight()) {}

StreamOrder::StreamOrder(const std::string& plugin, Sight sight)
    : fake_(open_fake(plugin)), current_stream_(find_current_stream(plugin)), sight_(sight) {
  current_ = this;
  {
    const std::lock_guard<std::mutex> lock(fake_.mutex);
    fake_.on_call = [this](const FakeCall& call) { note(call); };
  }
  callback_ = at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end)
                                        .needsInputs(true)
                                        .needsOutputs(true)
                                        .scopes({at::RecordScope::FUNCTION}));
}

StreamOrder::~StreamOrder() {
  at::removeCallback(callback_);
  const std::lock_guard<std::mutex> lock(fake_.mutex);
  fake_.on_call = {};
  current_ = nullptr;
}

std::unique_ptr<at::ObserverContext> StreamOrder::begin(const at::RecordFunction& function) {
  auto operation = std::make_unique<Operation>();
  operation->name = function.name();
  fused_updates += is_fused_update(operation->name) ? 1 : 0;
  const std::vector<bool> written = written_arguments(function);
  const auto inputs = function.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_written = i < written.size() && written[i];
    collect(inputs[i], is_written ? operation->writes : operation->reads);
  }
  return operation;
}

void StreamOrder::end(const at::RecordFunction& function, at::ObserverContext* context) {
  std::vector<Part> outputs;
  for (const c10::IValue& output : function.outputs()) collect(output, outputs);
  const auto& operation = static_cast<const Operation&>(*context);
  current_->run(operation, outputs);
  fused_updates -= is_fused_update(operation.name) ? 1 : 0;
}

void StreamOrder::join(Clock& into, const Clock& from) {
  for (const auto& [stream, time] : from) into[stream] = std::max(into[stream], time);
}

void StreamOrder::note(const FakeCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  switch (call.kind) {
    case FakeCall::Kind::kAsk:
      if (call.answer && sight_.host_waits) join(hosts_[call.thread], streams_[call.stream]);
      break;
    case FakeCall::Kind::kAskEvent:
      if (call.answer && sight_.host_waits) join(hosts_[call.thread], events_[call.event]);
      break;
    case FakeCall::Kind::kRecord:
      events_[call.event] = streams_[call.stream];
      break;
    case FakeCall::Kind::kAwait:
      if (sight_.awaits) join(streams_[call.stream], events_[call.event]);
      break;
    case FakeCall::Kind::kMark:
      if (sight_.marks && states_.contains(call.memory)) {
        states_.at(call.memory).marked.insert(call.stream);
      }
      break;
    case FakeCall::Kind::kUpload:
    case FakeCall::Kind::kDownload:
    case FakeCall::Kind::kFetch:
      copying_[call.thread] = call.kind;
      break;
    case FakeCall::Kind::kOpen:
    case FakeCall::Kind::kClose:
    case FakeCall::Kind::kEnter:
    case FakeCall::Kind::kSettle:
    case FakeCall::Kind::kRange:
      break;
  }
}

StreamOrder::State& StreamOrder::state_of(const c10::Storage& storage) {
  const auto [found, is_new] = states_.try_emplace(key(storage));
  if (is_new) found->second.alive = storage.getWeakStorageImpl();
  return found->second;
}

void StreamOrder::check(const std::vector<Use>& earlier, const Use& now, const std::string& what) {
  for (const Use& use : earlier) {
    if (use.stream == now.stream || use.end <= now.begin || now.end <= use.begin) continue;
    if (streams_[now.stream][use.stream] >= use.time) continue;
    faults_.insert(now.operation + " on stream " + std::to_string(now.stream) + " " + what + " " +
                   use.operation + " on stream " + std::to_string(use.stream));
  }
}

void StreamOrder::check_host(const State& state, const Operation& operation) {
  for (const Use& write : state.writes) {
    if (hosts_[std::this_thread::get_id()][write.stream] >= write.time) continue;
    faults_.insert("the host's " + operation.name + " reads before it has waited for " +
                   write.operation + " on stream " + std::to_string(write.stream));
  }
}

void StreamOrder::run(const Operation& operation, const std::vector<Part>& outputs) {
  const int stream = current_stream_();
  if (stream < 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::thread::id thread = std::this_thread::get_id();
  const auto copying = copying_.find(thread);
  const bool is_copy = copying != copying_.end();
  if (is_copy && operation.name != "aten::clone") return;  // a part of the copy
  const bool is_download = is_copy && copying->second == FakeCall::Kind::kDownload;
  const bool is_upload = is_copy && copying->second == FakeCall::Kind::kUpload;
  if (is_copy) copying_.erase(copying);
  if (operation.name == "aten::_local_scalar_dense" && fused_updates == 0) ++items_;
  bool is_of_host = !is_copy && !operation.reads.empty() && operation.writes.empty();
  for (const Part& part : operation.reads) {
    const bool is_on_host = is_known(part.storage) && state_of(part.storage).is_on_host;
    if (is_on_host) check_host(state_of(part.storage), operation);
    is_of_host = is_of_host && is_on_host;
  }
  int time = 0;
  if (!is_of_host) {
    join(streams_[stream], hosts_[thread]);
    time = ++streams_[stream][stream];
  }
  const auto use_of = [&](const Part& part) {
    return Use{stream, time, operation.name, part.begin, part.end};
  };
  if (!is_of_host && !is_upload) {
    for (const Part& part : operation.reads) read(use_of(part), state_of(part.storage));
  }
  for (const Part& part : operation.writes) write(use_of(part), state_of(part.storage));
  for (const Part& part : outputs) {
    if (holds(operation.reads, part.storage) || holds(operation.writes, part.storage)) continue;
    State& state = state_of(part.storage);
    if (state.home < 0) state.home = stream;
    state.is_on_host = is_of_host || is_download;
    if (!is_of_host) write(use_of(part), state);
  }
}

void StreamOrder::check_memory(const Use& use, const State& state) {
  if (state.home < 0 || state.home == use.stream || state.is_on_host) return;
  if (state.marked.contains(use.stream)) return;
  faults_.insert(use.operation + " on stream " + std::to_string(use.stream) +
                 " uses memory of stream " + std::to_string(state.home) +
                 ", which the allocator has not been told");
}

void StreamOrder::read(const Use& use, State& state) {
  check_memory(use, state);
  for (const Use& write : state.writes) reads_across_ += write.stream != use.stream ? 1 : 0;
  check(state.writes, use, "is not ordered behind");
  const auto is_again = [&](const Use& other) {
    return other.stream == use.stream && other.begin == use.begin && other.end == use.end;
  };
  std::erase_if(state.reads, is_again);
  state.reads.push_back(use);
}

void StreamOrder::write(const Use& use, State& state) {
  check_memory(use, state);
  check(state.writes, use, "writes without order behind");
  check(state.reads, use, "writes without order behind");
  const auto is_covered = [&](const Use& other) {
    return use.begin <= other.begin && other.end <= use.end;
  };
  std::erase_if(state.writes, is_covered);
  std::erase_if(state.reads, is_covered);
  state.writes.push_back(use);
}

void StreamOrder::end_step() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Clock seen;
  for (const auto& [thread, clock] : hosts_) join(seen, clock);
  Clock all;
  for (auto& [stream, clock] : streams_) {
    if (seen[stream] < clock[stream]) {
      faults_.insert("nobody has waited for stream " + std::to_string(stream) +
                     " at the end of the step");
    }
    all[stream] = clock[stream];
  }
  for (auto& [stream, clock] : streams_) clock = all;
  for (auto& [thread, clock] : hosts_) clock = all;
  for (auto state = states_.begin(); state != states_.end();) {
    state = state->second.alive->expired() ? states_.erase(state) : std::next(state);
  }
}

std::vector<std::string> StreamOrder::faults() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {faults_.begin(), faults_.end()};
}

int StreamOrder::reads_across() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reads_across_;
}

int StreamOrder::items() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return items_;
}

}  // namespace frazil
