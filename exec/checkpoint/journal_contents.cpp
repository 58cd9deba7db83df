#include "exec/checkpoint/journal_contents.h"

#include <algorithm>
#include <utility>

namespace frazil {
namespace {

void enter_kernels(const JournalLine& line, JournalContents& contents) {
  std::erase_if(contents.kernels,
                [&line](const JournalLine& later) { return later.step > line.step; });
  contents.kernels.push_back(line);
}

// Lists what the contents say in an order in which it can be read again.
std::vector<JournalLine> list_lines(const JournalContents& contents) {
  std::vector<JournalLine> lines;
  // Of one step, weights come before kernels: they are of the steps before.
  for (const auto& [step, hash] : contents.weights) {
    lines.push_back({.kind = JournalKind::kWeights, .step = step, .value = hash});
  }
  lines.insert(lines.end(), contents.kernels.begin(), contents.kernels.end());
  for (const JournalRecord& record : contents.records) {
    lines.push_back({JournalKind::kStep, record.step, record.loss_bits, record.mask_hash});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const JournalLine& a, const JournalLine& b) {
    return std::pair(a.step, a.kind == JournalKind::kStep) <
           std::pair(b.step, b.kind == JournalKind::kStep);
  });
  return lines;
}

}  // namespace

bool continues(const JournalLine& line, const JournalContents& contents) {
  switch (line.kind) {
    case JournalKind::kStep:
      return line.step == contents.steps;
    case JournalKind::kWeights:
    case JournalKind::kKernels:
    case JournalKind::kOtherKernels:
      return line.step <= contents.steps;
    case JournalKind::kLost:
      return line.step == contents.steps && line.value > 0 &&
             line.value <= static_cast<std::uint64_t>(kMostJournalSteps - line.step);
  }
  return false;
}

void add_line(const JournalLine& line, JournalContents& contents) {
  switch (line.kind) {
    case JournalKind::kStep:
      contents.steps = line.step + 1;
      return;
    case JournalKind::kWeights:
      contents.weights.emplace(line.step, line.value);
      return;
    case JournalKind::kKernels:
      enter_kernels(line, contents);
      return;
    case JournalKind::kOtherKernels:
      drop_from(line.step, contents);
      enter_kernels(line, contents);
      return;
    case JournalKind::kLost:
      contents.steps += static_cast<Step>(line.value);
      return;
  }
}

void drop_from(Step step, JournalContents& contents) {
  std::erase_if(contents.records,
                [step](const JournalRecord& record) { return record.step >= step; });
  contents.weights.erase(contents.weights.upper_bound(step), contents.weights.end());
  contents.steps = std::min(contents.steps, step);
}

std::string journal_text(const JournalContents& contents, std::uint64_t run_hash) {
  std::string text = journal_header(run_hash);
  std::uint64_t hash = hash_in_line(text);
  Step steps = 0;
  const auto add = [&](const JournalLine& line) {
    const std::string next = journal_line(line, hash);
    hash = hash_in_line(next);
    text += next;
  };
  const auto lose_until = [&](Step step) {
    if (step <= steps) return;
    add({.kind = JournalKind::kLost,
         .step = steps,
         .value = static_cast<std::uint64_t>(step - steps)});
    steps = step;
  };
  for (const JournalLine& line : list_lines(contents)) {
    lose_until(line.step);
    add(line);
    if (line.kind == JournalKind::kStep) ++steps;
  }
  lose_until(contents.steps);
  return text;
}

}  // namespace frazil
