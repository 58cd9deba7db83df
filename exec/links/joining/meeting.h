#pragma once
// Where the processes of a launch meet: opens the place as the leader, or finds it as a member.

#include <optional>

#include "exec/links/joining/joined_world.h"
#include "exec/links/joining/launch_environment.h"
#include "exec/links/joining/meeting_file.h"

namespace frazil {

struct OpenMeeting {
  Descriptor listener;          // closed for a launch of one process that nobody can join
  std::optional<Secret> token;  // the given one, or one drawn for this launch
  std::unique_ptr<MeetingFile>
      file;  // if a file says where; goes when nobody looks for it any more
};

struct FoundMeeting {
  Descriptor leader;  // connected
  std::optional<Secret> token;
};

// Listens where the launch says, and publishes where if the launch cannot know. Throws InputError
// if the launch does not say enough, or the place is beyond the loopback and there is no token.
OpenMeeting open_meeting(const LaunchPlace& place, const JoinOptions& options);

// Waits until the leader listens. Throws InputError as open_meeting() does, PeerLost at `until`.
FoundMeeting find_meeting(const LaunchPlace& place, const JoinOptions& options,
                          JoinClock::time_point until);

// Returns the address of a host: itself if it is numeric, else the first that the system's resolver
// knows, IPv4 before IPv6, so that all processes choose alike. Throws InputError if there is none.
SocketAddress resolve(const LaunchAddress& address);

}  // namespace frazil
