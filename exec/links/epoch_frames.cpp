#include "exec/links/epoch_frames.h"

#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kMostEarly = 1 << 16;

}  // namespace

void EpochFrames::open(std::uint32_t epoch, LinkWorld world) {
  ENSURE(epoch > epoch_, "each world has an epoch of its own");
  epoch_ = epoch;
  world_ = std::move(world);
  for (Early& early : std::exchange(early_, {})) {
    try {
      hand_on(early.process, std::move(early.head), std::move(early.tensors));
    } catch (const FrameError&) {
      ++stale_;  // who sent it is not asked here; what waits for it ends at its deadline
    }
  }
}

void EpochFrames::hand_on(int process, FrameHead&& head, Tensors&& tensors) {
  if (head.epoch == epoch_ && world_.take)
    return world_.take(process, std::move(head), std::move(tensors));
  if (head.epoch > epoch_ && early_.size() < kMostEarly) {
    early_.push_back({process, std::move(head), std::move(tensors)});
    return;
  }
  // Who ends an old world says so to all; that is no stray.
  if (head.kind != FrameKind::kFinished) ++stale_;
}

void EpochFrames::forget(int process) {
  std::erase_if(early_, [process](const Early& early) { return early.process == process; });
}

void EpochFrames::lose(int process, const std::string& why) const {
  if (world_.lose) world_.lose(process, why);
}

}  // namespace frazil
