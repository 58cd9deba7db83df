#include "profiles/import/sailor_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiles/error.h"
#include "profiles/import/sailor_json.h"
#include "profiles/json.h"

namespace frazil {
namespace {

constexpr double kMegabyte = 1e6;
constexpr double kGigabyte = 1e9;
constexpr double kLargestBandwidth = 1e15;
constexpr double kLargestCoefficient = 1e9;
constexpr std::size_t kMostCoefficients = 16;

BandwidthFit read_fit(const JsonCursor& cursor) {
  const JsonItems parts = cursor.items();
  if (parts.size() != 2) {
    cursor.fail(fmt::format("{} values", parts.size()), "coefficients and a largest bandwidth");
  }
  BandwidthFit fit;
  for (const JsonCursor& coefficient : parts[0].items()) {
    fit.coefficients.push_back(coefficient.real(-kLargestCoefficient, kLargestCoefficient));
  }
  if (fit.coefficients.empty() || fit.coefficients.size() > kMostCoefficients) {
    parts[0].fail(fmt::format("{} coefficients", fit.coefficients.size()),
                  fmt::format("1 to {}", kMostCoefficients));
  }
  fit.largest = parts[1].real(1, kLargestBandwidth);
  return fit;
}

std::map<int, BandwidthFit> read_fits(const JsonCursor& by_gpu, const std::string& gpu) {
  std::map<int, BandwidthFit> fits;
  visit_numbered(JsonFields(by_gpu).required(gpu), 1, "a number of GPUs",
                 [&](int senders, const JsonCursor& fit) { fits.emplace(senders, read_fit(fit)); });
  return fits;
}

}  // namespace

SailorLinks parse_sailor_links(std::string_view text, const std::string& file,
                               const std::string& gpu) {
  JsonFields fields(parse_json(text, file));
  SailorLinks links{.between_nodes = read_fits(fields.required("inter"), gpu),
                    .within_node = read_fits(fields.required("intra"), gpu)};
  fields.finish();
  return links;
}

BytesPerSecond bandwidth_at(const BandwidthFit& fit, Bytes message) {
  const double size = std::log2(static_cast<double>(message.count) / kMegabyte);
  double gigabytes = 0;
  for (const double coefficient : fit.coefficients) gigabytes = gigabytes * size + coefficient;
  const double bandwidth = std::min(gigabytes * kGigabyte, fit.largest);
  if (message.count < 1 || !(bandwidth >= 1)) {
    throw InputError("a bandwidth fit", 0,
                     fmt::format("no bandwidth above zero for {} bytes", message.count),
                     "a message within the measured sizes");
  }
  return {std::llround(bandwidth)};
}

}  // namespace frazil
