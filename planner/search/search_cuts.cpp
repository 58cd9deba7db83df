#include "planner/search/search_cuts.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/search/cut_search.h"

namespace frazil {
namespace {

// No plan and no shape may take more than this share of what is left of the budget.
constexpr std::int64_t kShare = 8;

class CutPhase {
 public:
  CutPhase(Evaluator& evaluator, const SearchOptions& options, Incumbents& kept,
           Rejections& rejected)
      : evaluator_(evaluator),
        options_(options),
        kept_(kept),
        rejected_(rejected),
        search_(evaluator, options.cut_effort) {}

  SearchedCuts run(std::vector<OpenShape> open) {
    move_kept();
    std::sort(open.begin(), open.end(), [](const OpenShape& a, const OpenShape& b) {
      return std::tie(a.at_least, a.shape) < std::tie(b.at_least, b.shape);
    });
    Duration at_least = kNever;
    for (const OpenShape& own : open) {
      const Duration below = fastest();
      if (own.at_least >= below) break;
      if (search_.actions_left() == 0) {
        at_least = std::min(at_least, own.at_least);
        break;
      }
      CutSearch::Answer answer = search_.find_below(own.shape, below, share_of_budget());
      at_least = std::min(at_least, std::max(own.at_least, answer.at_least));
      if (answer.fastest) take(own.shape, own.ordinal, *answer.fastest);
    }
    found_.tried = search_.tried();
    found_.at_least = std::min(at_least, fastest());
    return found_;
  }

 private:
  std::int64_t share_of_budget() const {
    return std::max<std::int64_t>(1, search_.actions_left() / kShare);
  }

  // Returns the makespan of the fastest plan that is kept. With a held plan this may not be the one
  // with the least cost.
  Duration fastest() const { return kept_.least_makespan(); }

  void move_kept() {
    std::vector<KeptPlan> plans = kept_.take_plans();
    // Half of the budget is left for the shapes.
    const std::int64_t least_left = search_.actions_left() / 2;
    for (KeptPlan& plan : plans) {
      std::optional<KeptPlan> moved;
      if (plan.shape && search_.actions_left() > least_left) {
        moved = move(plan, search_.actions_left() - least_left);
      }
      if (moved) ++found_.faster;
      if (!moved || options_.held) keep(std::move(plan));
      if (moved) keep(std::move(*moved));
    }
  }

  std::optional<KeptPlan> move(const KeptPlan& plan, std::int64_t most) {
    Verdict verdict = evaluator_.judge(*plan.shape);
    if (verdict.rejection) return std::nullopt;
    if (!search_.climb(*plan.shape, verdict, std::max<std::int64_t>(1, most / kShare)))
      return std::nullopt;
    return KeptPlan{evaluator_.make_candidate(*plan.shape, verdict), plan.shape, plan.ordinal};
  }

  void take(const Shape& shape, std::int64_t ordinal, const Verdict& verdict) {
    ++found_.faster;
    if (!options_.held) {
      if (!kept_.drop(shape)) rejected_.take_back(shape);
    }
    keep({evaluator_.make_candidate(shape, verdict), shape, ordinal});
  }

  // Keeps a plan unless an equal one is kept: of two arrangements that come to the same devices
  // one is left.
  void keep(KeptPlan plan) {
    if (kept_.holds(plan.candidate.plan)) return;
    const auto gone = kept_.keep(std::move(plan));
    if (gone && gone->shape && !kept_.holds(*gone->shape)) {
      rejected_.add_slower(*gone->shape, gone->candidate.makespan);
    }
  }

  Evaluator& evaluator_;
  const SearchOptions& options_;
  Incumbents& kept_;
  Rejections& rejected_;
  CutSearch search_;
  SearchedCuts found_;
};

}  // namespace

SearchedCuts search_cuts(Evaluator& evaluator, const SearchOptions& options,
                         std::vector<OpenShape> open, Incumbents& kept, Rejections& rejected) {
  return CutPhase(evaluator, options, kept, rejected).run(std::move(open));
}

}  // namespace frazil
