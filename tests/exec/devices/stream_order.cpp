#include "tests/exec/devices/stream_order.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <utility>

namespace frazil {
namespace {

void collect(const c10::IValue& value, std::vector<c10::Storage>& into) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.has_storage()) into.push_back(tensor.storage());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) collect(element, into);
  }
}

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

bool holds(const std::vector<c10::Storage>& some, const c10::Storage& one) {
  return std::any_of(some.begin(), some.end(), [&](const c10::Storage& other) {
    return other.unsafeGetStorageImpl() == one.unsafeGetStorageImpl();
  });
}

}  // namespace

StreamOrder* StreamOrder::current_ = nullptr;

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
  std::vector<c10::Storage> outputs;
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

void StreamOrder::check(const Use& earlier, const Use& now, const std::string& what) {
  if (earlier.stream < 0 || earlier.stream == now.stream) return;
  if (streams_[now.stream][earlier.stream] >= earlier.time) return;
  faults_.insert(now.operation + " on stream " + std::to_string(now.stream) + " " + what + " " +
                 earlier.operation + " on stream " + std::to_string(earlier.stream));
}

void StreamOrder::check_host(const State& state, const Operation& operation) {
  const Use& write = state.write;
  if (write.stream < 0 || hosts_[std::this_thread::get_id()][write.stream] >= write.time) return;
  faults_.insert("the host's " + operation.name + " reads before it has waited for " +
                 write.operation + " on stream " + std::to_string(write.stream));
}

void StreamOrder::run(const Operation& operation, const std::vector<c10::Storage>& outputs) {
  const int stream = current_stream_();
  if (stream < 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::thread::id thread = std::this_thread::get_id();
  const auto copying = copying_.find(thread);
  const bool is_copy = copying != copying_.end();
  if (is_copy && operation.name != "aten::clone") return;  // a part of the copy
  const bool is_download = is_copy && copying->second == FakeCall::Kind::kDownload;
  const bool is_upload = is_copy && copying->second == FakeCall::Kind::kUpload;
  if (operation.name == "aten::_local_scalar_dense" && fused_updates == 0) ++items_;
  bool is_of_host = !is_copy && !operation.reads.empty() && operation.writes.empty();
  for (const c10::Storage& storage : operation.reads) {
    const bool is_on_host = is_known(storage) && state_of(storage).is_on_host;
    if (is_on_host) check_host(state_of(storage), operation);
    is_of_host = is_of_host && is_on_host;
  }
  Use use{.stream = stream, .time = 0, .operation = operation.name};
  if (!is_of_host) {
    join(streams_[stream], hosts_[thread]);
    use.time = ++streams_[stream][stream];
  }
  const auto touch = [&](const c10::Storage& storage) -> State& {
    State& state = state_of(storage);
    if (state.home >= 0 && state.home != stream && !state.is_on_host &&
        !state.marked.contains(stream)) {
      faults_.insert(operation.name + " on stream " + std::to_string(stream) +
                     " uses memory of stream " + std::to_string(state.home) +
                     ", which the allocator has not been told");
    }
    return state;
  };
  if (!is_of_host && !is_upload) {
    for (const c10::Storage& storage : operation.reads) {
      State& state = touch(storage);
      if (state.write.stream >= 0 && state.write.stream != stream) ++reads_across_;
      check(state.write, use, "is not ordered behind");
      state.reads[stream] = use;
    }
  }
  for (const c10::Storage& storage : operation.writes) {
    State& state = touch(storage);
    check(state.write, use, "writes without order behind");
    for (const auto& [other, read] : state.reads) check(read, use, "writes without order behind");
    state.write = use;
    state.reads.clear();
  }
  for (const c10::Storage& storage : outputs) {
    if (holds(operation.reads, storage) || holds(operation.writes, storage)) continue;
    State& state = state_of(storage);
    if (state.home < 0) state.home = stream;
    state.is_on_host = is_of_host || is_download;
    state.write = is_of_host ? Use() : use;
  }
  if (is_copy) copying_.erase(thread);
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
