#include "exec/links/joining/meeting.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <utility>

#include "exec/disk/hashes.h"
#include "exec/links/joining/agent_store.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

std::string key_of(const LaunchPlace& place) {
  return "frazil/" + place.job + "/" + std::to_string(place.restarts);
}

std::string to_text_of_port(const Descriptor& listener) { return to_text(address_of(listener)); }

// All processes are on this host, as far as the launcher says.
bool is_one_host(const LaunchPlace& place) {
  return place.processes == 1 || (place.local && place.local->processes == place.processes);
}

std::filesystem::path meeting_place(const LaunchPlace& place, const JoinOptions& options) {
  if (!is_one_host(place) || place.job.empty()) {
    throw InputError("environment", 0,
                     "the variables of " + std::string(to_text(place.launcher)) +
                         ", which do not say where process 0 listens",
                     "MASTER_ADDR and MASTER_PORT, or --listen ADDRESS:PORT");
  }
  const std::filesystem::path folder =
      options.meeting_folder.empty() ? find_meeting_folder() : options.meeting_folder;
  return folder / ("frazil-" + to_hex(hash_text(place.job, options.facts.run)) + ".join");
}

void check_token(const SocketAddress& address, const JoinOptions& options) {
  if (options.token || is_loopback(address)) return;
  throw InputError("--token-file", 0, "no token for " + to_text(address),
                   "a token, without which no process listens or joins beyond this host");
}

Descriptor listen_for(const SocketAddress& address, const JoinOptions& options) {
  check_token(address, options);
  try {
    return listen_at(address);
  } catch (const SocketError& error) {
    throw InputError(to_text(address), 0, error.what(), "an address of this host and a free port");
  }
}

std::string at_most(const JoinOptions& options) {
  return ", at most " + std::to_string(options.limit / std::chrono::seconds(1)) + " s";
}

void tell(const LaunchPlace& place, const JoinOptions& options, const Descriptor& listener) {
  if (!options.tell) return;
  const int others = place.processes - 1;
  options.tell(
      "listening at " + to_text_of_port(listener) +
      (others == 0 ? "" : " for " + std::to_string(others) + " more to join" + at_most(options)));
}

// The host at which torchrun's first process listens: that of the agent's store, which runs beside
// it, or the loopback if nobody comes from elsewhere.
SocketAddress beside_agent(const LaunchPlace& place) {
  SocketAddress address;
  if (!is_one_host(place)) address.host = resolve(*place.meeting).host;
  return address;
}

// Tries until the leader listens; connect_to() tries for itself, but the place may change
// meanwhile.
Descriptor connect_until(const SocketAddress& address, JoinClock::time_point until) {
  SocketAddress from = address;
  from.port = 0;
  // Any address of this host reaches another one; to the loopback only the loopback does.
  if (!is_loopback(address))
    from.host = address.host.find(':') == std::string::npos ? "0.0.0.0" : "::";
  return connect_to(address, from, left_until(until));
}

Descriptor reach(const SocketAddress& address, const JoinOptions& options,
                 JoinClock::time_point until) {
  check_token(address, options);
  try {
    return connect_until(address, until);
  } catch (const SocketError& error) {
    throw PeerLost("no leader listens at " + to_text(address) + ": " + error.what());
  }
}

// A file may have been left by an earlier launch, so it is read again until its leader answers.
FoundMeeting reach_by_file(const std::filesystem::path& file, JoinClock::time_point until) {
  while (JoinClock::now() < until) {
    if (const std::optional<Meeting> meeting = read_meeting(file)) {
      try {
        const auto soon = std::min(until, JoinClock::now() + milliseconds(200));
        return {connect_until(meeting->address, soon), meeting->token};
      } catch (const SocketError&) {
        continue;
      }
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
  throw PeerLost("the first process of this launch does not say in " + file.string() +
                 " where it listens");
}

}  // namespace

SocketAddress resolve(const LaunchAddress& address) {
  SocketAddress found{address.host, static_cast<std::uint16_t>(address.port)};
  if (is_numeric(found)) return found;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, [](addrinfo* entries) {
    if (entries != nullptr) ::freeaddrinfo(entries);
  });
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* entry = error == 0 ? list : nullptr; entry != nullptr;
         entry = entry->ai_next) {
      if (entry->ai_family != family) continue;
      std::array<char, NI_MAXHOST> host{};
      if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, host.data(), host.size(), nullptr, 0,
                        NI_NUMERICHOST) == 0) {
        found.host = host.data();
        return found;
      }
    }
  }
  throw InputError(to_text(address), 0, "a host name without an address", "a known host");
}

OpenMeeting open_meeting(const LaunchPlace& place, const JoinOptions& options) {
  if (place.agent_store) {
    ENSURE(place.meeting.has_value(), "an agent's store has an address");
    OpenMeeting meeting{listen_for(beside_agent(place), options), options.token, {}};
    publish_in_agent_store(*place.meeting, key_of(place), to_text_of_port(meeting.listener),
                           options.limit);
    return meeting;
  }
  if (place.meeting) {
    OpenMeeting meeting{listen_for(resolve(*place.meeting), options), options.token, {}};
    tell(place, options, meeting.listener);
    return meeting;
  }
  if (place.processes == 1) return {};
  const std::filesystem::path file = meeting_place(place, options);
  OpenMeeting meeting{listen_for({}, options), options.token ? options.token : draw_secret(), {}};
  meeting.file =
      std::make_unique<MeetingFile>(file, Meeting{address_of(meeting.listener), *meeting.token});
  return meeting;
}

FoundMeeting find_meeting(const LaunchPlace& place, const JoinOptions& options,
                          JoinClock::time_point until) {
  if (place.agent_store) {
    ENSURE(place.meeting.has_value(), "an agent's store has an address");
    const std::string where = find_in_agent_store(*place.meeting, key_of(place), options.limit);
    const SocketAddress address = resolve(parse_address(where, "torchrun's agent store"));
    return {reach(address, options, until), options.token};
  }
  if (place.meeting) return {reach(resolve(*place.meeting), options, until), options.token};
  FoundMeeting meeting = reach_by_file(meeting_place(place, options), until);
  if (options.token) meeting.token = options.token;
  return meeting;
}

}  // namespace frazil
