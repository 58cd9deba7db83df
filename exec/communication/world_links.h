#pragma once
// What a world over processes needs of the links between them, whatever carries the frames: a
// struct of functions, which do as those of exec/links/peer_links.h.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
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
  std::function<void(int process, const std::string& why)> lose;
  // Longer than a frame takes to come to a process that reads, on a machine with much to do.
  Duration moment = std::chrono::milliseconds(50);

  void send(int process, LinkSocket socket, FrameHead head, Tensors tensors = {}) const {
    send_frame(process, socket, std::move(head), std::move(tensors));
  }
};

// Returns what a world needs of `links`, which live as long as the function `open`: all but `look`
// and `wait`, which depend on who reads.
template <class Links>
WorldLinks world_links_of(const std::shared_ptr<Links>& links) {
  Links& of = *links;
  WorldLinks functions;
  functions.processes = of.processes();
  functions.open = [links](std::uint32_t epoch, LinkWorld world) {
    links->open(epoch, std::move(world));
  };
  functions.send_frame = [&of](int process, LinkSocket socket, FrameHead head, Tensors tensors) {
    of.send(process, socket, std::move(head), std::move(tensors));
  };
  functions.has_credit = [&of](int process, std::int64_t bytes) {
    return of.has_credit(process, bytes);
  };
  functions.wait_for_credit = [&of](int process, std::int64_t bytes, const auto& stop,
                                    Duration limit) {
    return of.wait_for_credit(process, bytes, stop, limit);
  };
  functions.nudge = [&of] { of.nudge(); };
  functions.lose = [&of](int process, const std::string& why) { of.lose(process, why); };
  return functions;
}

}  // namespace frazil
