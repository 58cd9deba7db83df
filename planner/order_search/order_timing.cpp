#include "planner/order_search/order_timing.h"

#include <algorithm>
#include <array>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

using Time = OrderTiming::Time;
constexpr Time kLongAgo = -(Time{1} << 60);
constexpr Time kLongest = Time{1} << 44;  // so that scores have room to be multiplied
constexpr Time kWeight = 1024;

}  // namespace

OrderTiming::OrderTiming(const LinearPipeline& pipeline, Objective objective)
    : micro_batches_(static_cast<std::size_t>(pipeline.micro_batches)),
      length_(3 * micro_batches_),
      halves_at_input_(pipeline.release == ActivationRelease::kHalfAtInput ? 1 : 0) {
  if (!pipeline.splits_backward) {
    throw InfeasibleError("orders are searched for split backwards, not for fused ones");
  }
  find_costs(pipeline, objective);
  const std::size_t stages = stages_.size();
  letters_.resize(stages * length_);
  work_at_.resize(stages * length_);
  forwards_.resize(stages * length_);
  inputs_.resize(stages * length_);
  end_.assign((stages + 2) * length_, kLongAgo);
  position_.assign((stages + 2) * length_, 0);
  moving_.assign(stages, {0, 0, kNever.count()});
  most_changes_ = 16 * letters_.size();
}

// Sets the costs of the stages and the unit of time. Work that waits for itself goes round through
// the F and I of at least two stages. If these have no length it would not be seen to wait; then
// each F and I takes one unit more, in units so small that all of these units together are less
// than a nanosecond.
void OrderTiming::find_costs(const LinearPipeline& pipeline, Objective objective) {
  __extension__ using Wide = __int128;
  Wide all = 0;
  int empty = 0;
  for (std::size_t s = 0; s < pipeline.times.size(); ++s) {
    const auto& [forward, input, weight] = pipeline.times[s];
    if (forward.count() + input.count() == 0) ++empty;
    all += Wide{forward.count()} + input.count() + weight.count();
    if (s > 0) all += Wide{pipeline.down[s - 1].count()} + pipeline.up[s - 1].count();
  }
  const Time more = empty >= 2 ? 1 : 0;
  if (empty >= 2) unit_ = static_cast<Time>(length_ * pipeline.times.size()) + 1;
  if (all * pipeline.micro_batches >= Wide{kLongest} / unit_) {
    throw InfeasibleError("the times of this pipeline add up to too much to search its orders");
  }
  Time head = 0;
  Time sum = 0;
  for (std::size_t s = 0; s < pipeline.times.size(); ++s) {
    const auto& [forward, input, weight] = pipeline.times[s];
    StageCosts costs;
    costs.length = {forward.count() * unit_ + more, input.count() * unit_ + more,
                    weight.count() * unit_};
    const bool is_last = s + 1 == pipeline.times.size();
    costs.hop = {s == 0 ? 0 : pipeline.down[s - 1].count() * unit_,
                 is_last ? 0 : pipeline.up[s].count() * unit_, kLongAgo};
    head += costs.hop[index_of(Letter::kF)];
    costs.head = head;
    costs.offset = objective == Objective::kSpan ? -(head / unit_ * unit_) : 0;
    costs.total =
        (costs.length[0] + costs.length[1] + costs.length[2]) * static_cast<Time>(micro_batches_);
    costs.room = 2 * pipeline.in_flight[s];
    sum += head + costs.total + costs.offset;
    head += costs.length[index_of(Letter::kF)];
    stages_.push_back(costs);
  }
  least_mean_ = sum / static_cast<Time>(stages_.size());
}

bool OrderTiming::assign(const Words& words) {
  ENSURE(words.size() == stages_.size(), "a word for each stage");
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (words[s].size() != length_ || !fits(s, 0, words[s])) return false;
    for (const Letter letter : {Letter::kF, Letter::kI, Letter::kW}) {
      const auto found = std::count(words[s].begin(), words[s].end(), letter);
      if (static_cast<std::size_t>(found) != micro_batches_) return false;
    }
    write(s, 0, words[s]);
  }
  if (!time_all()) return false;
  sum_up();
  return true;
}

// Times the whole order, each device in turn as far as it comes; false if all of them wait.
bool OrderTiming::time_all() {
  std::fill(end_.begin(), end_.end(), kLongAgo);
  std::vector<std::size_t> next(stages_.size(), 0);
  for (std::size_t left = stages_.size() * length_; left > 0;) {
    const std::size_t before = left;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      Time free = next[s] == 0 ? 0 : end_[work_at_[s * length_ + next[s] - 1]];
      for (; next[s] < length_; ++next[s], --left) {
        const std::size_t place = s * length_ + next[s];
        const Letter letter = letters_[place];
        const Time sent = end_[sender_of(work_at_[place], letter)];
        if (sent == kLongAgo && waits(s, letter)) break;
        free = std::max(free, sent + stages_[s].hop[index_of(letter)]) +
               stages_[s].length[index_of(letter)];
        end_[work_at_[place]] = free;
      }
    }
    if (left == before) return false;
  }
  return true;
}

bool OrderTiming::replace(std::size_t stage, std::size_t first, std::span<const Letter> letters,
                          Time limit) {
  const std::span<const Letter> old = word(stage);
  while (!letters.empty() && letters.front() == old[first]) {
    letters = letters.subspan(1);
    ++first;
  }
  while (!letters.empty() && letters.back() == old[first + letters.size() - 1]) {
    letters = letters.first(letters.size() - 1);
  }
  if (letters.empty()) return score_ <= limit;
  if (!fits(stage, first, letters)) return false;
  const auto begin = old.begin() + static_cast<std::ptrdiff_t>(first);
  old_letters_.assign(begin, begin + static_cast<std::ptrdiff_t>(letters.size()));
  write(stage, first, letters);
  old_ends_.clear();
  moving_[stage] = {first, std::min(first + letters.size(), length_ - 1), 0};
  if (retime((limit - least_mean_) / kWeight)) {
    const Time score = score_;
    sum_up();
    if (score_ <= limit) return true;
    score_ = score;
  }
  undo();
  write(stage, first, old_letters_);
  return false;
}

std::uint32_t OrderTiming::work_of(std::size_t stage, Letter letter,
                                   std::size_t micro_batch) const {
  return static_cast<std::uint32_t>((stage + 1) * length_ + index_of(letter) * micro_batches_ +
                                    micro_batch);
}

// True if each micro-batch runs F, I, W in this order, and the stage never holds more than it has
// room for.
bool OrderTiming::fits(std::size_t stage, std::size_t first,
                       std::span<const Letter> letters) const {
  const std::size_t place = stage * length_ + first;
  const int most = static_cast<int>(micro_batches_);
  int forwards = forwards_[place];
  int inputs = inputs_[place];
  int weights = static_cast<int>(first) - forwards - inputs;
  int room = stages_[stage].room - 2 * forwards + halves_at_input_ * inputs +
             (2 - halves_at_input_) * weights;
  for (const Letter letter : letters) {
    switch (letter) {
      case Letter::kF:
        room -= 2;
        if (room < 0 || ++forwards > most) return false;
        break;
      case Letter::kI:
        room += halves_at_input_;
        if (++inputs > forwards) return false;
        break;
      case Letter::kW:
        room += 2 - halves_at_input_;
        if (++weights > inputs) return false;
        break;
    }
  }
  return true;
}

void OrderTiming::write(std::size_t stage, std::size_t first, std::span<const Letter> letters) {
  const std::size_t place = stage * length_ + first;
  std::array<int, kLetters> done{forwards_[place], inputs_[place], 0};
  done[2] = static_cast<int>(first) - done[0] - done[1];
  for (std::size_t i = 0; i < letters.size(); ++i) {
    letters_[place + i] = letters[i];
    forwards_[place + i] = done[0];
    inputs_[place + i] = done[1];
    const auto micro_batch = static_cast<std::size_t>(done[index_of(letters[i])]++);
    const std::uint32_t work = work_of(stage, letters[i], micro_batch);
    work_at_[place + i] = work;
    position_[work] = static_cast<std::uint32_t>(first + i);
  }
}

// Times moved work again. Work is looked at in the order in which it started before, which behind a
// change is an order of what waits for what: only work that follows moved work may be timed once
// more. False as soon as some device must end later than allowed, and if work waits for itself and
// would be timed for ever.
bool OrderTiming::retime(Time allowed) {
  while (true) {
    std::size_t stage = 0;
    Time first = kNever.count();
    next_start_ = kNever.count();
    for (std::size_t s = 0; s < moving_.size(); ++s) {
      if (moving_[s].start < first) {
        next_start_ = first;
        first = moving_[s].start;
        stage = s;
      } else {
        next_start_ = std::min(next_start_, moving_[s].start);
      }
    }
    if (first == kNever.count()) return true;
    if (!run(stage, allowed)) return false;
  }
}

bool OrderTiming::run(std::size_t stage, Time allowed) {
  const StageCosts& costs = stages_[stage];
  Moving& moving = moving_[stage];
  const std::size_t begin = stage * length_;
  const std::size_t first = moving.first;
  const std::size_t last = moving.last;
  moving.start = kNever.count();
  const Time forwards = forwards_[begin + first];
  const Time inputs = inputs_[begin + first];
  const Time weights = static_cast<Time>(first) - forwards - inputs;
  Time latest = allowed - costs.offset - costs.total + forwards * costs.length[0] +
                inputs * costs.length[1] + weights * costs.length[2];  // of the end before
  Time free = first == 0 ? 0 : end_[work_at_[begin + first - 1]];
  for (std::size_t position = first;;) {
    const Letter letter = letters_[begin + position];
    const std::uint32_t work = work_at_[begin + position];
    const Time length = costs.length[index_of(letter)];
    const Time end =
        std::max(free, end_[sender_of(work, letter)] + costs.hop[index_of(letter)]) + length;
    latest += length;
    const Time old_end = end_[work];
    if (end != old_end) {
      if (end > latest || old_ends_.size() > most_changes_) return false;
      old_ends_.push_back({work, old_end});
      end_[work] = end;
      notify(stage, letter, work, old_end, end);
    } else if (position >= last) {
      return true;
    }
    if (++position == length_) return true;
    free = end;
    const std::size_t next = begin + position;
    const Time old_start = end_[work_at_[next]] - costs.length[index_of(letters_[next])];
    if (old_start <= next_start_) continue;
    moving = {position, std::max(last, position), old_start};
    return true;
  }
}

// Marks the work that waits for this message as moved if the message comes too late, or if it was
// what the work waited for.
void OrderTiming::notify(std::size_t stage, Letter letter, std::uint32_t work, Time old_end,
                         Time end) {
  if (letter == Letter::kW) return;
  if (letter == Letter::kF ? stage + 1 == stages_.size() : stage == 0) return;
  const std::size_t to = letter == Letter::kF ? stage + 1 : stage - 1;
  const auto length = static_cast<std::uint32_t>(length_);
  const std::uint32_t next = letter == Letter::kF ? work + length : work - length;
  const StageCosts& costs = stages_[to];
  const Time start = end_[next] - costs.length[index_of(letter)];
  const Time hop = costs.hop[index_of(letter)];
  if (end + hop <= start && old_end + hop < start) return;
  const std::size_t position = position_[next];
  Moving& moving = moving_[to];
  if (moving.start == kNever.count()) {
    moving = {position, position, start};
  } else if (position < moving.first) {
    moving.first = position;
    moving.start = start;
  } else {
    moving.last = std::max(moving.last, position);
  }
  next_start_ = std::min(next_start_, moving.start);
}

void OrderTiming::undo() {
  for (auto old = old_ends_.rbegin(); old != old_ends_.rend(); ++old) end_[old->work] = old->end;
  for (Moving& moving : moving_) moving.start = kNever.count();
}

void OrderTiming::sum_up() {
  Time longest = 0;
  Time sum = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Time end = last_end(s) + stages_[s].offset;
    longest = std::max(longest, end);
    sum += end;
  }
  score_ = kWeight * longest + sum / static_cast<Time>(stages_.size());
}

OrderTiming::Time OrderTiming::last_end(std::size_t stage) const {
  return end_[work_at_[(stage + 1) * length_ - 1]];
}

Duration OrderTiming::longest() const {
  Time longest = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    longest = std::max(longest, last_end(s) + stages_[s].offset);
  }
  return Duration{longest / unit_};
}

Duration OrderTiming::makespan() const {
  Time latest = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) latest = std::max(latest, last_end(s));
  return Duration{latest / unit_};
}

Duration OrderTiming::span() const {
  Time longest = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    longest = std::max(longest, last_end(s) / unit_ - stages_[s].head / unit_);
  }
  return Duration{longest};
}

Words OrderTiming::words() const {
  Words words;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const std::span<const Letter> letters = word(s);
    words.emplace_back(letters.begin(), letters.end());
  }
  return words;
}

void OrderTiming::find_critical_path(std::vector<WordPlace>& path) const {
  path.clear();
  std::size_t stage = 0;
  for (std::size_t s = 1; s < stages_.size(); ++s) {
    if (last_end(s) + stages_[s].offset > last_end(stage) + stages_[stage].offset) stage = s;
  }
  for (std::size_t position = length_ - 1;;) {
    path.push_back({stage, position});
    const std::size_t place = stage * length_ + position;
    const Letter letter = letters_[place];
    const Time start = end_[work_at_[place]] - stages_[stage].length[index_of(letter)];
    if (position > 0 && end_[work_at_[place - 1]] == start) {
      --position;
      continue;
    }
    if (!waits(stage, letter)) return;
    position = position_[sender_of(work_at_[place], letter)];
    stage = letter == Letter::kF ? stage - 1 : stage + 1;
  }
}

}  // namespace frazil
