#pragma once
// Prints a planned trajectory, for people (a table) and for programs (one JSON object).

#include <string>

#include "planner/trajectory/plan_trajectory.h"

namespace frazil {

std::string print_trajectory(const PlannedTrajectory& planned);
std::string trajectory_json(const PlannedTrajectory& planned);

}  // namespace frazil
