#pragma once
// In which batches the missing rows of a micro-batch run alone, so that their bits are those they
// have in the whole. A kernel chooses its path by the shape it is given: on a CPU a linear layer of
// one to three samples without tokens adds in another order than of four and more, while the
// layers of a transformer, which see samples times tokens, give the same bits in any batch; a GPU
// may choose for any size. So a size is tried on this machine before it is used: the first few
// micro-batches that could use it run whole as well, and the rows are compared. Up to the largest
// size that ever gave other bits none is used: a batch is filled with copies of a row up to the
// next. That trials hold for all micro-batches of the shape follows from the rule that any cache of
// features rests on: in batches of one size a row has the same bits wherever and beside whatever it
// stands (exec/devices/numerics.h). Of several threads.

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

namespace frazil {

class BatchSizes {
 public:
  static constexpr int kTrials = 3;  // of a size, before it is used

  // `are_exact`: sizes are tried; else any will do.
  explicit BatchSizes(bool are_exact) : are_exact_(are_exact) {}

  // Layers [from, depth) on rows of micro-batches of `whole`.
  struct Work {
    int from = 0;
    int depth = 0;
    std::int64_t whole = 0;
    friend auto operator<=>(const Work&, const Work&) = default;
  };
  struct Choice {
    std::int64_t rows = 0;    // the whole: they do not run alone
    bool is_trusted = false;  // else it is to be tried
  };
  // The smallest batch for `rows` rows that may be used.
  Choice choose(const Work& work, std::int64_t rows) const;
  // What a trial has shown.
  void note(const Work& work, std::int64_t rows, bool same_bits);

 private:
  struct Trials {
    std::int64_t largest_unequal = 0;
    std::map<std::int64_t, int> equal;  // by size
  };

  bool are_exact_;
  mutable std::mutex mutex_;  // of all below
  std::map<Work, Trials> trials_;
};

}  // namespace frazil
