#include "exec/reduction/clip.h"

#include <ATen/ATen.h>

#include <cmath>
#include <set>

#include "profiles/error.h"

namespace frazil {
namespace {

// Returns the devices with an update: those whose lists hold a BARRIER.
std::set<int> updating_devices(const StepProgram& program) {
  std::set<int> devices;
  for (std::size_t l = 0; l < program.topology.owners.size(); ++l) {
    if (!program.activity.layers[l].weight_gradient) continue;
    for (const LayerOwner& owner : program.topology.owners[l]) devices.insert(owner.device.value);
  }
  return devices;
}

// Returns the sums of squares of the layers whose first owner is `self`: one row (layer, parameter,
// sum) each.
at::Tensor own_norms(const std::map<LayerId, Tensors>& sums, const StepProgram& program,
                     DeviceId self) {
  std::vector<double> rows;
  Tensors squares;
  for (const auto& [layer, gradients] : sums) {
    if (program.topology.owners[layer.index()].front().device != self) continue;
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      rows.insert(rows.end(), {static_cast<double>(layer.value), static_cast<double>(p), 0});
      squares.push_back(gradients[p].to(at::kDouble).square().sum());
    }
  }
  at::Tensor table = at::tensor(rows, at::kDouble).view({-1, 3});
  // The sums come from a GPU in one copy.
  if (!squares.empty()) table.select(1, 2).copy_(at::stack(squares));
  return table;
}

double scale_from(const std::vector<at::Tensor>& tables, double clip_norm) {
  std::map<std::pair<double, double>, double> ordered;
  for (const at::Tensor& table : tables) {
    const auto rows = table.accessor<double, 2>();
    for (std::int64_t r = 0; r < rows.size(0); ++r) {
      ordered[{rows[r][0], rows[r][1]}] = rows[r][2];
    }
  }
  double total = 0;
  for (const auto& [key, square] : ordered) total += square;
  const double scale = clip_norm / (std::sqrt(total) + 1e-6);
  return scale >= 1 ? 1 : scale;  // not std::min: a norm that is not a number must show
}

}  // namespace

double find_clip_scale(const std::map<LayerId, Tensors>& sums, const StepProgram& program,
                       DeviceId self, Communicator& communicator, Step step, double clip_norm) {
  ENSURE(clip_norm > 0, "clipping has a norm");
  const std::set<int> devices = updating_devices(program);
  const int place = *devices.begin();
  const Tag norms{.kind = MessageKind::kSquaredNorms, .index = 0, .step = step};
  const Tag answer{.kind = MessageKind::kSquaredNorms, .index = 1, .step = step};
  if (self.value != place) {
    communicator.send(place, norms, {own_norms(sums, program, self)});
    return *communicator.receive(place, answer).at(0).const_data_ptr<double>();
  }
  std::vector<at::Tensor> tables{own_norms(sums, program, self)};
  for (const int device : devices) {
    if (device != place) tables.push_back(communicator.receive(device, norms).at(0));
  }
  const double scale = scale_from(std::move(tables), clip_norm);
  for (const int device : devices) {
    if (device != place) communicator.send(device, answer, {at::scalar_tensor(scale, at::kDouble)});
  }
  return scale;
}

}  // namespace frazil
