#include "tests/exec/communication/fake_nccl_streams.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>

#include "tests/exec/communication/fake_nccl_state.h"

namespace frazil::fake {
namespace {

// Returns the first operation of the end's group that is not done and that `is_wanted` takes.
template <class Wanted>
Operation* find_operation(End* end, const Wanted& is_wanted) {
  if (end == nullptr || !end->moves()) return nullptr;
  for (Operation& operation : end->stream.front()) {
    if (!operation.done && is_wanted(operation)) return &operation;
  }
  return nullptr;
}

bool meet(End& sender, Operation& send) {
  End* const receiver = sender.communicator->ends[static_cast<std::size_t>(send.peer)];
  Operation* const receive = find_operation(receiver, [&](const Operation& other) {
    return other.kind == Operation::Kind::kReceive && other.peer == sender.rank;
  });
  if (receive == nullptr) return false;
  if (receive->to.nbytes() != send.from.nbytes()) {
    violate("a message of " + std::to_string(send.from.nbytes()) + " bytes meets a receive of " +
            std::to_string(receive->to.nbytes()));
    sender.failure = receiver->failure = "internal error";
    return true;
  }
  std::memcpy(receive->to.mutable_data_ptr(), send.from.const_data_ptr(), send.from.nbytes());
  send.done = receive->done = true;
  return true;
}

at::Tensor add_up(const std::vector<Operation*>& parts) {
  at::Tensor sum = parts.front()->from.clone();
  for (std::size_t p = 1; p < parts.size(); ++p) sum.add_(parts[p]->from);
  return sum;
}

void perform(const std::vector<Operation*>& parts) {
  const c10::NoGradGuard no_grad;
  const Operation& first = *parts.front();
  const auto ranks = static_cast<std::int64_t>(parts.size());
  if (first.kind == Operation::Kind::kAllReduce) {
    const at::Tensor sum = add_up(parts);
    for (Operation* part : parts) part->to.copy_(sum);
  } else if (first.kind == Operation::Kind::kReduceScatter) {
    const at::Tensor sum = add_up(parts).reshape({ranks, -1});
    for (std::int64_t r = 0; r < ranks; ++r) {
      parts[static_cast<std::size_t>(r)]->to.view(-1).copy_(sum[r]);
    }
  } else if (first.kind == Operation::Kind::kAllGather) {
    std::vector<at::Tensor> owns;
    for (const Operation* part : parts) owns.push_back(part->from.reshape(-1));
    const at::Tensor all = at::cat(owns);
    for (Operation* part : parts) part->to.view(-1).copy_(all);
  } else {
    const at::Tensor root = parts[static_cast<std::size_t>(first.peer)]->from.clone();
    for (Operation* part : parts) part->to.copy_(root);
  }
  for (Operation* part : parts) part->done = true;
}

bool collect(End& end) {
  std::vector<Operation*> parts;
  for (End* other : end.communicator->ends) {
    Operation* const part =
        find_operation(other, [](const Operation& one) { return !one.is_message(); });
    if (part == nullptr) return false;
    parts.push_back(part);
  }
  for (const Operation* part : parts) {
    if (part->kind == parts.front()->kind && part->from.nbytes() == parts.front()->from.nbytes()) {
      continue;
    }
    violate("a collective meets another one");
    end.failure = "internal error";
    return true;
  }
  perform(parts);
  return true;
}

bool advance(End& end) {
  if (end.communicator == nullptr || !end.moves()) return false;
  bool moved = false;
  std::set<int> waiting;  // peers to whom an earlier message of the group has not gone yet
  for (Operation& operation : end.stream.front()) {
    if (operation.done) continue;
    if (operation.kind == Operation::Kind::kSend && !waiting.contains(operation.peer)) {
      if (meet(end, operation)) {
        moved = true;
      } else {
        waiting.insert(operation.peer);
      }
    } else if (!operation.is_message()) {
      moved = collect(end) || moved;
    }
    if (!end.failure.empty()) return true;
  }
  const Group& first = end.stream.front();
  if (std::all_of(first.begin(), first.end(), [](const Operation& one) { return one.done; })) {
    end.stream.pop_front();
    ++end.done;
    moved = true;
  }
  return moved;
}

}  // namespace

void advance_streams() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (End* end : state().ends) moved = advance(*end) || moved;
  }
}

}  // namespace frazil::fake
