#include "planner/interop/pytorch_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "planner/actions/deadlock.h"
#include "planner/actions/message_order.h"
#include "profiles/error.h"

namespace frazil {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw InfeasibleError("PyTorch's pipelining has no way to say " + what);
}

[[noreturn]] void refuse(const Action& action, std::size_t device, std::string_view why) {
  refuse(fmt::format("{} on device {}: {}", to_text(action), device, why));
}

bool is_update(const Action& action) {
  return action.kind == ActionKind::kUpdate || action.kind == ActionKind::kBarrier;
}

bool is_whole_stage(ActionKind kind) {
  return kind == ActionKind::kReduceGradients || kind == ActionKind::kUnshard ||
         kind == ActionKind::kReshard;
}

// Returns why PyTorch has no such action; empty when it has one.
std::string_view why_not(const Action& action) {
  if (action.kind == ActionKind::kRecompute) return "it does not recompute by schedule";
  if (action.kind == ActionKind::kMove) return "it moves no state";
  if (is_update(action)) return "it has no updates inside a step and no weight versions";
  if (action.slice) return "it has no slices of a micro-batch";
  if (action.micro_batches && action.micro_batches->count() > 1) {
    return "its actions are of one micro-batch each";
  }
  if (action.peer) return "its messages go to neighbouring stages only";
  return "";
}

// The devices of a pipeline's stages and the pipeline's micro-batches, as the actions show them.
struct Replica {
  std::map<StageId, DeviceId> device_of;
  std::set<MicroBatchId> micro_batches;
};

class ReplicaReader {
 public:
  explicit ReplicaReader(const Schedule& schedule) : schedule_(schedule) {}

  std::vector<Replica> read() {
    for (std::size_t device = 0; device < schedule_.devices.size(); ++device) read_device(device);
    std::vector<Replica> replicas;
    for (auto& [pipeline, replica] : replicas_) {
      if (pipeline.index() != replicas.size()) {
        refuse(fmt::format("pipeline {}: it has nothing to do", replicas.size()));
      }
      if (replica.micro_batches.empty()) {
        refuse(fmt::format("pipeline {}: it has no micro-batches", pipeline.value));
      }
      replicas.push_back(std::move(replica));
    }
    return replicas;
  }

 private:
  void read_device(std::size_t device) {
    const std::vector<Action>& list = schedule_.devices[device];
    const auto end = std::find_if(list.rbegin(), list.rend(), [](const Action& action) {
      return is_compute(action.kind) && !is_update(action);
    });
    std::optional<PipelineId> pipeline;
    for (auto action = list.begin(); action != list.end(); ++action) {
      if (is_update(*action) && action >= end.base()) continue;
      for (const Action& part : parts_of(*action)) {
        if (const auto why = why_not(part); !why.empty()) refuse(*action, device, why);
        if (pipeline.value_or(part.pipeline) != part.pipeline) {
          refuse(*action, device,
                 fmt::format("pipeline {} works there too, and a rank has stages of one pipeline",
                             pipeline->value));
        }
        pipeline = part.pipeline;
        add(part, DeviceId{device});
      }
    }
  }

  void add(const Action& part, DeviceId device) {
    Replica& replica = replicas_[part.pipeline];
    const DeviceId first = replica.device_of.emplace(part.stage, device).first->second;
    if (first != device) {
      refuse(part, device.index(),
             fmt::format("its stage lies on device {} too, and PyTorch's on one rank each",
                         first.value));
    }
    if (part.micro_batches) replica.micro_batches.insert(part.micro_batches->first);
  }

  const Schedule& schedule_;
  std::map<PipelineId, Replica> replicas_;
};

std::vector<DeviceId> list_ranks(const Replica& replica) {
  std::vector<DeviceId> ranks;
  for (const auto& [stage, device] : replica.device_of) {
    if (std::find(ranks.begin(), ranks.end(), device) == ranks.end()) ranks.push_back(device);
  }
  return ranks;
}

// Tells whether a dialect writes the action.
bool is_written(const Action& action, PytorchDialect dialect) {
  if (is_update(action)) return false;
  if (dialect == PytorchDialect::kComputeComms) return true;
  return !takes_peer(action.kind) && !is_whole_stage(action.kind);
}

Schedule renumber(const Schedule& schedule, const Replica& replica, PytorchDialect dialect) {
  std::map<MicroBatchId, MicroBatchId> number;
  for (const MicroBatchId m : replica.micro_batches) number.emplace(m, number.size());
  const auto rename = [&](Action& action) {
    action.pipeline = {};
    if (!action.micro_batches) return;
    const MicroBatchId m = number.at(action.micro_batches->first);
    action.micro_batches = {m, m};
  };
  Schedule rows;
  for (const DeviceId device : list_ranks(replica)) {
    std::vector<Action>& row = rows.devices.emplace_back();
    for (const Action& action : schedule.devices[device.index()]) {
      if (!is_written(action, dialect)) continue;
      Action& renamed = row.emplace_back(action);
      rename(renamed);
      if (auto* pair = std::get_if<ActionPair>(&renamed.detail)) {
        for (Action& half : pair->halves) rename(half);
      }
    }
  }
  return rows;
}

// Throws InfeasibleError for a stage that runs I alone, as one without parameters does: PyTorch
// asks every stage whose backward is split for its W.
void require_weights(const Schedule& rows) {
  std::set<StageId> with_input;
  std::set<StageId> with_weight;
  for (const std::vector<Action>& row : rows.devices) {
    for (const Action& action : row) {
      for (const Action& part : parts_of(action)) {
        if (part.kind == ActionKind::kBackwardInput) with_input.insert(part.stage);
        if (part.kind == ActionKind::kBackwardWeight) with_weight.insert(part.stage);
      }
    }
  }
  for (const StageId stage : with_input) {
    if (with_weight.count(stage) > 0) continue;
    refuse(
        fmt::format("that stage {} has no W, for nothing in it trains; where it is the loss "
                    "alone, import the model with --join-loss, and plan again",
                    stage.value));
  }
}

// Throws InfeasibleError where the last stage runs its F out of order: PyTorch keeps losses in the
// order in which they are computed and looks them up by micro-batch.
void require_losses_in_order(const Schedule& rows, const PytorchShape& shape) {
  const StageId last{shape.stages - 1};
  MicroBatchId next;
  for (const Action& action : rows.devices[shape.rank_of_stage.back().index()]) {
    for (const Action& part : parts_of(action)) {
      if (part.stage != last || part.kind != ActionKind::kForward) continue;
      if (part.micro_batches->first != next) {
        refuse(fmt::format("{} before {}F{}: the last stage runs its forwards in order",
                           to_text(part), last.value, next.value));
      }
      ++next.value;
    }
  }
}

// Returns the place in the row after the last backward of `stage` and the SENDs that follow it.
std::vector<Action>::iterator end_of_backwards(std::vector<Action>& row, StageId stage) {
  const auto last = std::find_if(row.rbegin(), row.rend(), [&](const Action& action) {
    const auto parts = parts_of(action);
    return std::any_of(parts.begin(), parts.end(), [&](const Action& part) {
      return part.stage == stage &&
             (part.kind == ActionKind::kBackward || part.kind == ActionKind::kBackwardWeight);
    });
  });
  return std::find_if(last.base(), row.end(), [](const Action& action) {
    return action.kind != ActionKind::kSendForward && action.kind != ActionKind::kSendBackward;
  });
}

void add_reductions(Schedule& rows, const PytorchShape& shape) {
  for (int s = 0; s < shape.stages; ++s) {
    const StageId stage{s};
    std::vector<Action>& row = rows.devices[shape.rank_of_stage[stage.index()].index()];
    const Action reduce = make_stage_action(PipelineId{}, stage, ActionKind::kReduceGradients);
    if (std::find(row.begin(), row.end(), reduce) != row.end()) continue;
    row.insert(end_of_backwards(row, stage), reduce);
  }
}

std::string print_rows(const Schedule& rows) {
  std::string text;
  for (const std::vector<Action>& row : rows.devices) {
    for (const Action& action : row) {
      if (&action != &row.front()) text += ',';
      append_text(text, action);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::vector<std::string> to_pytorch_csv(const Schedule& schedule, PytorchDialect dialect) {
  std::vector<std::string> texts;
  for (const Replica& replica : ReplicaReader(schedule).read()) {
    Schedule rows = renumber(schedule, replica, dialect);
    require_weights(rows);
    const auto complain = [&](std::size_t rank, const std::string& found,
                              const std::string& expected) {
      throw InfeasibleError(
          fmt::format("PyTorch's pipelining would refuse rank {} of pipeline {}: "
                      "{}, where it expects {}",
                      rank, texts.size(), found, expected));
    };
    const PytorchShape shape = check_pytorch_rows(rows, dialect, complain);
    require_losses_in_order(rows, shape);
    if (dialect == PytorchDialect::kComputeComms) {
      if (find_deadlock(rows, MessageLowering::kJustInTime)) rows = order_receives(rows);
      add_reductions(rows, shape);
    }
    texts.push_back(print_rows(rows));
  }
  return texts;
}

}  // namespace frazil
