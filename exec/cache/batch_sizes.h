#pragma once
// Chooses the batch sizes in which the missing rows of a micro-batch run alone, so that each row
// has the bits that it has when the whole micro-batch runs. Safe to call from several threads.
//
// A kernel chooses its path by the shape that it is given. On a CPU a linear layer of one to three
// samples without tokens adds in another order than one of four and more, while the layers of a
// transformer, which see samples times tokens, give the same bits in any batch; a GPU may choose
// for any size. So a size is tried on this machine before it is used: the first few micro-batches
// that could use it run whole as well, and the rows are compared. No size up to the largest that
// ever gave other bits is used: a smaller batch is filled with copies of a row up to the next size.
// Trials hold for all micro-batches of the shape by the rule that any cache of features rests on:
// in batches of one size a row has the same bits wherever it stands and whatever stands beside it
// (exec/devices/numerics.h).

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

namespace frazil {

class BatchSizes {
 public:
  static constexpr int kTrials = 3;  // of a size before it is used

  // Sizes are tried if `are_exact`; otherwise any size will do.
  explicit BatchSizes(bool are_exact) : are_exact_(are_exact) {}

  // The work that a size is chosen for: layers [from, depth) on some rows of a micro-batch of
  // `whole` rows.
  struct Work {
    int from = 0;
    int depth = 0;
    std::int64_t whole = 0;
    friend auto operator<=>(const Work&, const Work&) = default;
  };
  struct Choice {
    std::int64_t rows = 0;    // size of the batch; `whole`: they do not run alone
    bool is_trusted = false;  // otherwise the size is to be tried
  };
  // Returns the smallest batch for `rows` rows that may be used.
  Choice choose(const Work& work, std::int64_t rows) const;
  // Records what a trial has shown.
  void note(const Work& work, std::int64_t rows, bool same_bits);

 private:
  struct Trials {
    std::int64_t largest_unequal = 0;
    std::map<std::int64_t, int> equal;  // by size
  };

  bool are_exact_;
  mutable std::mutex mutex_;  // guards all below
  std::map<Work, Trials> trials_;
};

}  // namespace frazil
