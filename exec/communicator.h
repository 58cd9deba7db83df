#pragma once
// How devices of one run talk: the one virtual interface of the project, because two worlds exist
// behind it (threads of one process now, processes and GPUs elsewhere).

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "profiles/error.h"
#include "profiles/units.h"

namespace frazil {

using Tensors = std::vector<at::Tensor>;

enum class MessageKind : std::uint8_t {
  kActivation,
  kActivationGradient,
  kGradientNodes,
  kGradientSum,
  kSquaredNorms,
  kProbe,
};

// Names a message between two ranks; unique among those not yet received.
struct Tag {
  MessageKind kind = MessageKind::kProbe;
  std::int32_t pipeline = 0;
  std::int32_t stage = 0;  // that receives
  std::int32_t index = 0;  // micro-batch, or group of layers
  Step step = 0;

  friend auto operator<=>(const Tag&, const Tag&) = default;
};

// One rank's end. Calls come from that rank's thread only, abort() from any.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Never waits for the receiver. Requires: nobody writes to the tensors afterwards (they may be
  // handed over as they are), peer != rank().
  virtual void send(int peer, const Tag& tag, Tensors tensors) = 0;
  // Waits for the message. The tensors must not be written to. Throws PeerLost after abort().
  virtual Tensors receive(int peer, const Tag& tag) = 0;
  // Returns when all ranks have called it. Throws PeerLost after abort().
  virtual void barrier() = 0;
  // Every waiting and later call of every rank throws PeerLost with this reason.
  virtual void abort(const std::string& reason) = 0;
};

}  // namespace frazil
