#pragma once
// What PeerLinks keeps of one process, for its own sources.

#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "exec/links/peer_sockets.h"
#include "exec/links/receive_stream.h"
#include "exec/links/send_queue.h"

namespace frazil {

struct LinkPeer {
  // One direction each way over one socket.
  struct Way {
    Way(Descriptor given, const TensorPool& pool)
        : socket(std::move(given)), out(socket.number()), in(socket.number(), pool) {}
    bool has_unread() const { return !is_done && in.has_unread(); }

    Descriptor socket;
    SendQueue out;
    ReceiveStream in;
    bool is_done = false;  // the other end has closed it; of the reader
  };
  struct Loan {
    Tensors tensors;
    std::int64_t bytes = 0;
  };

  LinkPeer(PeerSockets sockets, const TensorPool& pool)
      : steps(std::move(sockets.steps), pool), bulk(std::move(sockets.bulk), pool) {
    is_open = steps.socket.is_open();
    if (!is_open) lost = "has ended";
  }

  Way& way(LinkSocket socket) { return socket == LinkSocket::kSteps ? steps : bulk; }
  std::int64_t outstanding() const {
    return steps.out.bytes() + bulk.out.bytes() + lent_bytes.load();
  }
  void shut() {
    for (Way* way : {&steps, &bulk}) {
      if (way->socket.is_open()) shutdown(way->socket.number(), SHUT_RDWR);
    }
  }

  Way steps;
  Way bulk;
  std::atomic<bool> is_open{false};
  std::atomic<bool> reads_us{false};
  pid_t process = 0;  // from its greeting; of the reader
  std::atomic<std::int64_t> lent_bytes{0};
  std::mutex mutex;  // guards all below
  std::uint64_t last_loan = 0;
  std::map<std::uint64_t, Loan> loans;
  std::optional<std::string> lost;  // why
};

}  // namespace frazil
