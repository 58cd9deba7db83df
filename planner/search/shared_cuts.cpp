#include "planner/search/shared_cuts.h"

#include <algorithm>
#include <cstddef>

#include "profiles/error.h"

namespace frazil {
namespace {

// The positions that stages may begin and end at, from 0 to the number of layers.
std::vector<int> list_places(const SharedProblem& problem) {
  const int layers = problem.sums.layers();
  std::vector<int> places{0};
  const Duration all = problem.sums.work({0, layers}, problem.recompute);
  for (int cut = 1; cut < layers; ++cut) {
    if (layers <= kMostCutPlaces + 1) {
      places.push_back(cut);
      continue;
    }
    // A cut is a place if the work before it is the first to reach one more even share.
    const auto shares_before = [&](int end) {
      const Duration before = problem.sums.work({0, end}, problem.recompute);
      return all.count() == 0 ? std::int64_t{0} : before.count() * kMostCutPlaces / all.count();
    };
    if (shares_before(cut) > shares_before(cut - 1)) places.push_back(cut);
  }
  places.push_back(layers);
  return places;
}

// The stages from some place to the end, on some devices.
struct Rest {
  Duration busiest = kNever;
  int devices = 0;  // that are used
  int end = 0;      // the place where the first stage ends
  int copies = 0;   // of the first stage
};

class SharedCutTable {
 public:
  explicit SharedCutTable(const SharedProblem& problem)
      : problem_(problem),
        places_(list_places(problem)),
        share_(divide_up(problem.devices, kMostShares)),
        shares_(problem.devices / share_) {}

  std::vector<SharedCuts> solve() {
    std::vector<SharedCuts> found;
    const int most = std::min({problem_.most_stages, shares_, last()});
    for (int stages = 1; stages <= most; ++stages) {
      tables_.emplace_back(places_.size() * static_cast<std::size_t>(shares_ + 1));
      // Of the longest pipelines only whole ones are asked for.
      for (int place = stages == most ? 0 : last() - stages; place >= 0; --place) {
        for (int shares = stages; shares <= shares_; ++shares) add(stages, place, shares);
      }
      if (stages > 1 && at(stages, 0, shares_).busiest < kNever) found.push_back(read(stages));
    }
    return found;
  }

 private:
  int last() const { return static_cast<int>(places_.size()) - 1; }
  LayerSpan span(int place, int end) const {
    return {places_[static_cast<std::size_t>(place)], places_[static_cast<std::size_t>(end)]};
  }
  Rest& at(int stages, int place, int shares) {
    return tables_[static_cast<std::size_t>(stages) - 1]
                  [static_cast<std::size_t>(place * (shares_ + 1) + shares)];
  }

  // Finds the best first stage of `stages` stages from a place to the end.
  void add(int stages, int place, int shares) {
    Rest& best = at(stages, place, shares);
    // Devices may stay idle.
    if (shares > stages) best = at(stages, place, shares - 1);
    const int first_end = stages == 1 ? last() : place + 1;
    for (int own = 1; own <= shares - (stages - 1); ++own) {
      const int copies = own * share_;
      if (copies > problem_.most_copies) break;
      for (int end = first_end; end <= last() - (stages - 1); ++end) {
        const Duration most = std::min(best.busiest, problem_.below);
        // A longer stage has more work.
        if (problem_.work(span(place, end), copies) >= most) break;
        Rest rest{Duration{0}, copies, end, own};
        if (stages > 1) {
          const Rest& behind = at(stages - 1, end, shares - own);
          if (behind.busiest >= most) continue;
          rest.busiest = behind.busiest;
          rest.devices += behind.devices;
        }
        rest.busiest = std::max(rest.busiest, problem_.time(span(place, end), copies));
        if (rest.busiest >= most) continue;
        if (problem_.memory(span(place, end), copies, rest.devices) > problem_.memory_limit) {
          continue;
        }
        best = rest;
      }
    }
  }

  SharedCuts read(int stages) {
    SharedCuts shared;
    int place = 0;
    int shares = shares_;
    for (int left = stages; left > 0; --left) {
      const Rest& rest = at(left, place, shares);
      shared.devices.push_back(rest.copies * share_);
      if (left > 1) shared.cuts.push_back(places_[static_cast<std::size_t>(rest.end)]);
      shares = rest.devices / share_ - rest.copies;
      place = rest.end;
    }
    return shared;
  }

  const SharedProblem& problem_;
  std::vector<int> places_;
  int share_;                              // devices that are dealt as one
  int shares_;                             // of the cluster
  std::vector<std::vector<Rest>> tables_;  // by stages, then place and shares
};

Duration transfer_time(Bytes size, BytesPerSecond bandwidth) {
  if (bandwidth.count == 0) return Duration{0};
  return Duration{static_cast<Duration::rep>(static_cast<double>(size.count) * 1e9 /
                                             static_cast<double>(bandwidth.count))};
}

}  // namespace

Duration SharedProblem::work(LayerSpan span, int copies) const {
  return sums.work(span, recompute) * (divide_up(micro_batches, copies) - 1);
}

Duration SharedProblem::time(LayerSpan span, int copies) const {
  Bytes crossing;
  if (span.first > 0) crossing = std::max(sums.down(span.first), sums.up(span.first));
  if (span.end < sums.layers()) {
    crossing = std::max({crossing, sums.down(span.end), sums.up(span.end)});
  }
  const int own = divide_up(micro_batches, copies);
  const Duration work = std::max(sums.work(span, recompute), transfer_time(crossing, bandwidth));
  const std::int64_t sets = is_exact ? own : 1;
  const Bytes shipped{sums.updated_parameters(span).count * (copies - 1) / copies * (sets + 1)};
  return work * (own - 1) + transfer_time(shipped, bandwidth);
}

Bytes SharedProblem::memory(LayerSpan span, int copies, int devices_from_here) const {
  const int own = divide_up(micro_batches, copies);
  const int in_flight = std::min(own, divide_up(devices_from_here, copies));
  const int sets = copies > 1 && is_exact ? own : 1;
  const Bytes stash = sums.stash(span);
  Bytes kept = stash * in_flight;
  if (recompute) {
    const Bytes input = std::min(stash, sums.largest_down());
    kept = input * in_flight + (stash - input);
  }
  return sums.parameters(span) + sums.optimizer(span) + sums.updated_parameters(span) * sets + kept;
}

std::vector<SharedCuts> cut_shared_stages(const SharedProblem& problem) {
  ENSURE(problem.devices >= 1 && problem.micro_batches >= 1, "devices and micro-batches");
  return SharedCutTable(problem).solve();
}

}  // namespace frazil
