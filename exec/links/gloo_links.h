#pragma once
// Frames between processes by Gloo, with what a world needs of links (as PeerLinks has it). A frame
// is a block with its head, which is received before anybody knows what it will be, and a transfer
// for each tensor, straight from memory to memory. The head is there because shapes are not always
// known beforehand (the last micro-batch of an epoch is shorter, frozen layers send nothing), and
// because a receiver asks by tag and not by order.
//
// Gloo sends nothing before the receive is posted, so each connection has a thread that receives
// whatever comes, and one that waits for sends to be done; send() itself never waits. A process to
// which Gloo refuses to send is lost, as one whose connection is broken is.

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/links/epoch_frames.h"
#include "exec/links/gloo_group.h"
#include "exec/links/peer_sockets.h"
#include "exec/links/tensor_pool.h"

namespace frazil {

struct GlooLinkOptions {
  std::int64_t credit_bytes = std::int64_t{1} << 30;  // per process, as of LinkOptions
  std::int64_t most_pooled_bytes = std::int64_t{1} << 29;
  Duration linger = std::chrono::seconds(1);  // for what is unsent when the links end
};

class GlooLinks {
 public:
  explicit GlooLinks(std::unique_ptr<GlooGroup> group, GlooLinkOptions options = {});
  ~GlooLinks();
  GlooLinks(const GlooLinks&) = delete;
  GlooLinks& operator=(const GlooLinks&) = delete;

  int processes() const { return group_->processes(); }
  // All as of PeerLinks.
  void open(std::uint32_t epoch, LinkWorld world);
  void lose(int process, const std::string& why = "does not answer");
  void send(int process, LinkSocket socket, FrameHead head, Tensors tensors);
  bool has_credit(int process, std::int64_t bytes) const;
  bool wait_for_credit(int process, std::int64_t bytes, const std::function<bool()>& stop,
                       Duration limit);
  void nudge();
  // Returns when no thread of the links is inside of the world any more that was in it before.
  void pause() { const std::lock_guard<std::mutex> lock(world_mutex_); }
  std::uint64_t stale_frames() const { return frames_.stale(); }

 private:
  struct Way;
  struct Peer;

  void receive_on(int process, Way& way);
  void await_sends(int process, Way& way);
  static void shut(Peer& peer);
  void free_credit();
  void finish_sending();

  std::unique_ptr<GlooGroup> group_;
  GlooLinkOptions options_;
  TensorPool pool_;
  std::vector<std::unique_ptr<Peer>> peers_;  // none for this process

  std::mutex credit_mutex_;
  std::condition_variable credit_freed_;

  std::mutex world_mutex_;  // guards the next one, and is held while a world takes a frame
  EpochFrames frames_;
};

}  // namespace frazil
