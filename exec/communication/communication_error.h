#pragma once
// Says why a wait of one rank for another cannot end well. All ranks of the world are told the same
// cause in the same words.

#include <cstdint>
#include <optional>
#include <string>

#include "profiles/error.h"
#include "profiles/units.h"

namespace frazil {

struct CommunicationFault {
  enum class Kind : std::uint8_t {
    kDeadline,  // waited too long
    kDeadlock,  // ranks wait for each other in a ring
    kPeerLeft,  // the peer will send nothing more
    kOrder,     // received in another order than sent
  };

  Kind kind = Kind::kDeadline;
  int rank = 0;              // the rank that waits
  int peer = 0;              // the rank it waits for; at a barrier the first that is missing
  std::optional<Step> step;  // none at a barrier
  std::string awaited;  // "the activation of micro-batch 3 into stage 1 (step 17)", or "a barrier"
  std::string sentence;
};

// Thrown on every rank of the world, not only on fault().rank. what() is the fault's sentence.
class CommunicationError : public PeerLost {
 public:
  explicit CommunicationError(const CommunicationFault& fault)
      : PeerLost(fault.sentence), fault_(fault) {}

  const CommunicationFault& fault() const { return fault_; }

 private:
  CommunicationFault fault_;
};

}  // namespace frazil
