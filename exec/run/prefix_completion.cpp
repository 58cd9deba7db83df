#include "exec/run/prefix_completion.h"

#include <ATen/ATen.h>

#include <cstring>
#include <optional>
#include <utility>

namespace frazil {
namespace {

Tensors select(const Tensors& tensors, const at::Tensor& rows) {
  Tensors selected;
  for (const at::Tensor& tensor : tensors) selected.push_back(tensor.index_select(0, rows));
  return selected;
}

bool same_rows(const Tensors& a, const Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(a[i].const_data_ptr(), b[i].const_data_ptr(), a[i].nbytes()) != 0) return false;
  }
  return true;
}

// Joins the rows of all parts in the order of the micro-batch.
Tensors join(const std::vector<PrefixRows>& parts, std::int64_t count) {
  Tensors joined;
  for (std::size_t i = 0; i < parts.front().tensors.size(); ++i) {
    std::vector<std::int64_t> sizes = parts.front().tensors[i].sizes().vec();
    sizes.front() = count;
    joined.push_back(at::empty(sizes, parts.front().tensors[i].options()));
    for (const PrefixRows& part : parts) {
      joined.back().index_copy_(0, at::tensor(part.rows), part.tensors[i]);
    }
  }
  return joined;
}

}  // namespace

PrefixCompletion::PrefixCompletion(const StageContext& context)
    : depth_(context.activity.cached),
      compute_(context.recorder.compute()),
      runner_(context, {.layers = {{LayerId{0}, LayerId{context.activity.cached - 1}}}},
              /*add_gradients=*/{}) {}

Tensors PrefixCompletion::to_host(const Tensors& tensors) const {
  compute_.finish();
  Tensors here;
  for (const at::Tensor& tensor : tensors) here.push_back(tensor.cpu().contiguous());
  return here;
}

PrefixFeatures PrefixCompletion::find(PrefixCache& cache, std::span<const std::int64_t> ids,
                                      MicroBatchId micro_batch, const StageRunner::Data& data) {
  std::vector<PrefixRows> parts = cache.find(ids);
  if (parts.size() == 1) return {parts.front().depth, std::move(parts.front().tensors)};
  BatchSizes& sizes = cache.batch_sizes();
  const auto whole = static_cast<std::int64_t>(ids.size());
  std::vector<BatchSizes::Choice> choices;
  bool are_trusted = true;
  for (const PrefixRows& part : parts) {
    const auto rows = static_cast<std::int64_t>(part.rows.size());
    const bool is_there = part.depth == depth_;
    choices.push_back(is_there ? BatchSizes::Choice{rows, true}
                               : sizes.choose({part.depth, depth_, whole}, rows));
    if (choices.back().rows == whole) return {};
    are_trusted = are_trusted && choices.back().is_trusted;
  }
  std::optional<Tensors> all;
  if (!are_trusted) all = to_host(runner_.forward(micro_batch, data, {}).features);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    PrefixRows& part = parts[p];
    if (part.depth == depth_ || (all && choices[p].is_trusted)) continue;
    part.tensors = compute(part, choices[p].rows, micro_batch, data);
    if (!all) continue;
    sizes.note({part.depth, depth_, whole}, choices[p].rows,
               same_rows(part.tensors, select(*all, at::tensor(part.rows))));
  }
  if (!all) {
    cache.count_part();
    all = join(parts, whole);
  }
  cache.keep(ids, *all);
  return {depth_, *std::move(all)};
}

// Fills a batch that is larger than the rows with copies of the first row.
Tensors PrefixCompletion::compute(const PrefixRows& part, std::int64_t size,
                                  MicroBatchId micro_batch, const StageRunner::Data& data) {
  const auto count = static_cast<std::int64_t>(part.rows.size());
  std::vector<std::int64_t> own(static_cast<std::size_t>(size));
  std::vector<std::int64_t> rows = part.rows;
  rows.resize(own.size(), part.rows.front());
  for (std::size_t i = 0; i < part.rows.size(); ++i) own[i] = static_cast<std::int64_t>(i);
  const at::Tensor of_micro_batch = at::tensor(rows);
  const Samples samples{select(data.samples->inputs, of_micro_batch),
                        data.samples->labels.index_select(0, of_micro_batch)};
  const StageRunner::Data alone{.samples = &samples,
                                .loss_scale = data.loss_scale,
                                .key = data.key,
                                .features = {part.depth, select(part.tensors, at::tensor(own))}};
  Tensors features = runner_.forward(micro_batch, alone, {}).features;
  for (at::Tensor& tensor : features) tensor = tensor.narrow(0, 0, count);
  return to_host(features);
}

}  // namespace frazil
