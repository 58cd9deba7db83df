#pragma once
// The secret that the processes of a run share, and proofs of knowing it. Whoever joins proves it
// to the leader and the leader to it, each over random numbers (nonces) of both, so that a proof
// that was overheard is of no use in another joining. The secret itself is never sent. Traffic
// after the joining is neither encrypted nor signed.

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "exec/links/joining/secret.h"

namespace frazil {

// Reads a token: 32 bytes, or 64 hex digits and perhaps a line's end. Throws InputError unless the
// file is a regular one, belongs to this user and has exactly mode 0600.
Secret read_token(const std::filesystem::path& place);

// Makes a file with a new token, as hex digits, mode 0600; the file appears whole. Throws
// InputError if it exists already.
Secret make_token(const std::filesystem::path& place);

// What a proof is for: two proofs over the same numbers differ where their purposes do.
enum class ProofPurpose : std::uint8_t {
  kMember = 1,  // a joining process to the leader
  kLeader,      // the leader to it
  kDialing,     // a process that connects to a peer
  kAnswering,   // the peer to it
  kSession,     // no proof: derives the key of a run's connections from its token
};

// Returns the HMAC-SHA256 over purpose, nonces and the bytes of the message that it vouches for.
Secret make_proof(const Secret& key, ProofPurpose purpose, const Secret& listener_nonce,
                  const Secret& caller_nonce, std::string_view message);

}  // namespace frazil
