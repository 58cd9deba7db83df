#include "exec/links/joining/join.h"

#include <utility>

#include "exec/links/joining/gathering.h"
#include "exec/links/joining/meeting.h"
#include "exec/links/joining/membership.h"

namespace frazil {

JoinedWorld join_world(const LaunchPlace& place, const JoinOptions& given) {
  JoinOptions options = given;
  options.facts.attempt = place.restarts;
  const auto until = JoinClock::now() + options.limit;
  if (place.is_leader()) {
    OpenMeeting meeting = open_meeting(place, options);
    return gather_world(place, options, std::move(meeting.listener), meeting.token, until);
  }
  FoundMeeting meeting = find_meeting(place, options, until);
  return become_member(place, options, std::move(meeting.leader), meeting.token, until);
}

}  // namespace frazil
