#pragma once
// Makes the sockets over which processes talk: pairs that children inherit, and TCP between hosts.
// All of them are streams, close on exec and never block. TCP sockets send small messages at once
// and listen or connect at exactly the address that is given, which is the loopback by default.
// What the system refuses is a SocketError of one sentence.

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "exec/links/descriptor.h"
#include "profiles/units.h"

namespace frazil {

class SocketError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A numeric address of IPv4 or IPv6; names are not looked up. Port 0: the system chooses.
struct SocketAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;

  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};

// Returns "127.0.0.1:4000" or "[::1]:4000".
std::string to_text(const SocketAddress& address);
// True if `host` is numeric and reaches this host only: 127.0.0.0/8, ::1.
bool is_loopback(const SocketAddress& address);
// True if `host` is a numeric address.
bool is_numeric(const SocketAddress& address);

// Two ends of a Unix socket, which has no name and listens nowhere.
using SocketPair = std::array<Descriptor, 2>;
SocketPair make_socket_pair();

// True of a socket over TCP, false of an end of a pair.
bool is_tcp(const Descriptor& socket);
// Listens at `address`. address_of() tells the port that the system chose.
Descriptor listen_at(const SocketAddress& address);
SocketAddress address_of(const Descriptor& socket);
// The address at the other end of a connected TCP socket.
SocketAddress peer_of(const Descriptor& socket);
// Both wait at most `limit`. accept_from() returns a closed descriptor if nobody has come by then.
// connect_to() takes `from` as its own address (port 0: any) and tries again while nobody listens
// yet; it throws SocketError at the limit.
Descriptor accept_from(const Descriptor& listener, Duration limit);
Descriptor connect_to(const SocketAddress& peer, const SocketAddress& from, Duration limit);

}  // namespace frazil
