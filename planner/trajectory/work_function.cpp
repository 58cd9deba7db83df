#include "planner/trajectory/work_function.h"

#include <algorithm>
#include <utility>

#include "planner/trajectory/cheapest_walk.h"
#include "profiles/error.h"

namespace frazil {

Prices make_metric(const Prices& prices) {
  Prices metric = prices;
  const std::size_t states = prices.size();
  for (std::size_t a = 0; a < states; ++a) {
    for (std::size_t b = 0; b < states; ++b) {
      metric[a][b] = a == b ? Duration{0} : std::max(prices[a][b], prices[b][a]);
    }
  }
  // A price falls to that of the way through a third state if that is cheaper (Floyd and Warshall).
  for (std::size_t via = 0; via < states; ++via) {
    for (std::size_t a = 0; a < states; ++a) {
      for (std::size_t b = 0; b < states; ++b) {
        metric[a][b] = std::min(metric[a][b], metric[a][via] + metric[via][b]);
      }
    }
  }
  return metric;
}

WorkFunction::WorkFunction(Prices metric, std::size_t start)
    : metric_(std::move(metric)), state_(start) {
  ENSURE(start < metric_.size(), "the start is one of the states");
  work_ = metric_[start];
}

void WorkFunction::add_state(const std::vector<Duration>& prices) {
  ENSURE(prices.size() == metric_.size(), "a price for each state");
  std::vector<Duration> row = prices;
  for (std::size_t s = 0; s < row.size(); ++s) {
    for (std::size_t via = 0; via < row.size(); ++via) {
      row[s] = std::min(row[s], prices[via] + metric_[via][s]);
    }
  }
  Duration missing{0};
  for (std::size_t a = 0; a < row.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b)
      missing = std::max(missing, metric_[a][b] - row[a] - row[b]);
  }
  for (Duration& price : row) price += (missing + Duration{1}) / 2;
  Duration work = kFarAway;
  for (std::size_t s = 0; s < row.size(); ++s) {
    work = std::min(work, work_[s] + row[s]);
    metric_[s].push_back(row[s]);
  }
  row.push_back(Duration{0});
  metric_.push_back(std::move(row));
  work_.push_back(work);
}

std::size_t WorkFunction::serve(const std::vector<Duration>& task) {
  ENSURE(task.size() == work_.size(), "a cost for each state");
  std::vector<Duration> done(work_.size(), kFarAway);  // with the task done in that state
  for (std::size_t s = 0; s < done.size(); ++s) {
    if (task[s] < kFarAway) done[s] = work_[s] + task[s];
  }
  ENSURE(*std::min_element(done.begin(), done.end()) < kFarAway, "some state can do the task");
  for (std::size_t s = 0; s < work_.size(); ++s) {
    Duration least = kFarAway;
    for (std::size_t from = 0; from < done.size(); ++from) {
      if (done[from] < kFarAway) least = std::min(least, done[from] + metric_[from][s]);
    }
    work_[s] = least;
  }
  // Next is a state that minimises work + price and in which the task was done on the way; staying
  // comes first.
  std::size_t next = state_;
  Duration least = done[state_] == work_[state_] ? work_[state_] : kFarAway;
  for (std::size_t s = 0; s < work_.size(); ++s) {
    if (done[s] != work_[s]) continue;
    const Duration here = work_[s] + metric_[state_][s];
    if (here < least) {
      least = here;
      next = s;
    }
  }
  paid_ += metric_[state_][next] + task[next];
  changes_ += next == state_ ? 0 : 1;
  state_ = next;
  return state_;
}

// Returns the least cost of everything so far and `count` more of the task, ending in `end`. One
// state does them all: a way through several states can do all of them in its cheapest state, and
// by the triangle inequality (which also holds for work_) it pays no more for going there and on.
Duration WorkFunction::work_after(const std::vector<Duration>& task, Step count,
                                  std::size_t end) const {
  if (count == 0) return work_[end];
  Duration least = kFarAway;
  for (std::size_t s = 0; s < work_.size(); ++s) {
    if (task[s] >= kFarAway) continue;
    least = std::min(least, work_[s] + task[s] * count + metric_[s][end]);
  }
  return least;
}

std::vector<Duration> WorkFunction::work_after(const std::vector<Duration>& task,
                                               Step count) const {
  std::vector<Duration> work;
  for (std::size_t s = 0; s < work_.size(); ++s) work.push_back(work_after(task, count, s));
  return work;
}

// Says whether the rule stays where it is for the `time`-th of equal tasks (1: the next), having
// stayed for those before: it does where doing the task here is a cheapest way to end here.
bool WorkFunction::is_stay(const std::vector<Duration>& task, Step time) const {
  return work_after(task, time - 1, state_) + task[state_] == work_after(task, time, state_);
}

// Counts the equal tasks, at most `most`, for which the rule stays. work_after() is the least of
// lines and thus concave in the count: where the rule would go once, it would go ever after.
Step WorkFunction::count_stays(const std::vector<Duration>& task, Step most) const {
  if (task[state_] >= kFarAway) return 0;
  Step stays = 0;
  Step goes = most + 1;
  while (goes - stays > 1) {
    const Step middle = stays + (goes - stays) / 2;
    (is_stay(task, middle) ? stays : goes) = middle;
  }
  return stays;
}

// A state that the rule leaves is not entered again while the task is the same, so that there are
// no more rounds than states.
std::size_t WorkFunction::serve(const std::vector<Duration>& task, Step count) {
  ENSURE(task.size() == work_.size(), "a cost for each state");
  while (count > 0) {
    const Step stays = count_stays(task, count);
    if (stays > 0) {
      work_ = work_after(task, stays);
      paid_ += task[state_] * stays;
      count -= stays;
    }
    if (count == 0) break;
    serve(task);
    --count;
  }
  return state_;
}

Duration WorkFunction::hindsight() const { return *std::min_element(work_.begin(), work_.end()); }

Duration WorkFunction::additive() const {
  Duration widest{0};
  for (const std::vector<Duration>& row : metric_) {
    widest = std::max(widest, *std::max_element(row.begin(), row.end()));
  }
  return widest * static_cast<Duration::rep>(factor() - 1);
}

}  // namespace frazil
