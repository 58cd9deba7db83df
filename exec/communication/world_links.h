#pragma once
// What a world over processes needs of the links between them, whatever carries the frames: a
// struct of functions, which do as those of exec/links/peer_links.h.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "exec/links/peer_links.h"

namespace frazil {

struct WorldLinks {
  int processes = 0;
  std::function<void(std::uint32_t epoch, LinkWorld world)> open;
  std::function<void(int process, LinkSocket socket, FrameHead head, Tensors tensors)> send_frame;
  std::function<bool(int process, std::int64_t bytes)> has_credit;
  std::function<bool(int process, std::int64_t bytes, const std::function<bool()>& stop,
                     Duration limit)>
      wait_for_credit;
  std::function<void()> look;
  std::function<bool(std::mutex& mutex, std::condition_variable& wake,
                     const std::function<bool()>& is_over, Duration limit)>
      wait;
  std::function<void()> nudge;
  // Longer than a frame takes to come to a process that reads, on a machine with much to do.
  Duration moment = std::chrono::milliseconds(50);

  void send(int process, LinkSocket socket, FrameHead head, Tensors tensors = {}) const {
    send_frame(process, socket, std::move(head), std::move(tensors));
  }
};

}  // namespace frazil
