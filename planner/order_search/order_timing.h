#pragma once
// The times of one order of work on linear stages, kept up to date while the order changes. Work
// starts when its device is free and its message has arrived, so its end is the length of the
// longest path that leads there. A change on one device re-times only the work behind the change,
// up to where no end moves any more.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/order_search/order_words.h"
#include "planner/prediction/linear_bounds.h"

namespace frazil {

enum class Objective : std::uint8_t { kMakespan, kSpan };

struct WordPlace {
  std::size_t stage = 0;
  std::size_t position = 0;  // in its word
};

class OrderTiming {
 public:
  using Time = std::int64_t;  // ns; where two stages have an F and I of no length, a part of one

  // Throws InfeasibleError if backwards are fused, or if times add up past 2^44 ns (less if two
  // stages have an F and I of no length). Requires what find_linear_bounds() requires.
  OrderTiming(const LinearPipeline& pipeline, Objective objective);

  // Takes a whole order. False, and then no order is held, if it is none: a word without m of each
  // letter in the order F, I, W of each micro-batch, too much in memory, or a deadlock. Throws
  // std::logic_error unless there is one word for each stage.
  bool assign(const Words& words);

  // Writes `letters` over the word of a stage from `first` on. False, and all is as before, if the
  // result is no order or its score would be above `limit`. Requires: an order is held; `letters`
  // has as many of each letter as it replaces.
  bool replace(std::size_t stage, std::size_t first, std::span<const Letter> letters, Time limit);

  // All below but score_of(), stages() and length() require that an order is held.

  // Returns the score: 1024 times the objective plus the mean, over the devices, of what the
  // objective is the largest of. So the mean counts for about a thousandth.
  Time score() const { return score_; }
  // Returns the objective.
  Duration longest() const;
  // Returns what `time` of the objective is in the units of the score.
  Time score_of(Duration time) const { return 1024 * unit_ * time.count(); }
  Duration makespan() const;
  Duration span() const;  // of the device with the longest, from its first start to its last end

  std::size_t stages() const { return stages_.size(); }
  std::size_t length() const { return length_; }  // of a word
  std::span<const Letter> word(std::size_t stage) const {
    return {letters_.data() + stage * length_, length_};
  }
  Words words() const;
  // Returns the end of a work, in units of which score_of(1 ns) / 1024 are a nanosecond.
  Time end_of(WordPlace place) const {
    return end_[work_at_[place.stage * length_ + place.position]];
  }

  // Finds the work on a longest path to what the objective is the largest of, last first.
  void find_critical_path(std::vector<WordPlace>& path) const;

 private:
  struct StageCosts {
    std::array<Time, kLetters> length{};  // by letter
    std::array<Time, kLetters> hop{};     // before it
    Time head = 0;                        // when its first F can start, and does
    Time offset = 0;                      // what the objective adds to its last end
    Time total = 0;
    int room = 0;  // for halves of micro-batches
  };
  // Positions whose work may have to move, from the first to the last.
  struct Moving {
    std::size_t first = 0;
    std::size_t last = 0;
    Time start = 0;  // of the first, as it was; kNever: none
  };
  struct OldEnd {
    std::uint32_t work;
    Time end;
  };

  void find_costs(const LinearPipeline& pipeline, Objective objective);
  std::uint32_t work_of(std::size_t stage, Letter letter, std::size_t micro_batch) const;
  // Returns the work whose message `work` waits for. W waits for none: its hop is so far below zero
  // that it delays nothing.
  std::uint32_t sender_of(std::uint32_t work, Letter letter) const {
    const auto stage = static_cast<std::uint32_t>(length_);
    return letter == Letter::kF ? work - stage : work + stage;
  }
  bool waits(std::size_t stage, Letter letter) const {
    return letter == Letter::kF ? stage > 0 : letter == Letter::kI && stage + 1 < stages_.size();
  }
  Time last_end(std::size_t stage) const;
  bool time_all();
  void write(std::size_t stage, std::size_t first, std::span<const Letter> letters);
  bool fits(std::size_t stage, std::size_t first, std::span<const Letter> letters) const;
  bool retime(Time allowed);
  bool run(std::size_t stage, Time allowed);
  void notify(std::size_t stage, Letter letter, std::uint32_t work, Time old_end, Time end);
  void undo();
  void sum_up();

  Time unit_ = 1;  // time units in a nanosecond
  std::vector<StageCosts> stages_;
  std::size_t micro_batches_;
  std::size_t length_;
  int halves_at_input_;
  Time least_mean_ = 0;

  std::vector<Letter> letters_;         // by stage, position
  std::vector<std::uint32_t> work_at_;  // likewise
  std::vector<std::int32_t> forwards_;  // before a position
  std::vector<std::int32_t> inputs_;
  // End and position of each work, by stage, letter and micro-batch. One stage more on either side
  // stands for the messages that are always there.
  std::vector<Time> end_;
  std::vector<std::uint32_t> position_;
  Time score_ = 0;

  std::vector<Moving> moving_;  // by stage
  Time next_start_ = 0;         // the least start on stages that are not being run
  std::size_t most_changes_ = 0;
  std::vector<OldEnd> old_ends_;
  std::vector<Letter> old_letters_;
};

}  // namespace frazil
