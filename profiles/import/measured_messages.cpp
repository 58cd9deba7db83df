#include "profiles/import/measured_messages.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "profiles/error.h"
#include "profiles/import/file_lines.h"
#include "profiles/json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
constexpr double kMostMicroseconds = 1e9;

SizedTime read_time(JsonFields& fields, const char* key) {
  const double microseconds = fields.required(key).real(0.001, kMostMicroseconds);
  return {fields.required("bytes").integer(0, kMostBytes),
          Duration{static_cast<Duration::rep>(std::llround(microseconds * 1e3))}};
}

double count_ns(Duration time) { return static_cast<double>(time.count()); }

double price_ns(const Link& link, std::int64_t bytes) {
  const double moving = link.bandwidth.count == 0 ? 0
                                                  : static_cast<double>(bytes) * 1e9 /
                                                        static_cast<double>(link.bandwidth.count);
  return count_ns(link.latency) + moving;
}

// The line time = latency + bytes x slope in ns, with the errors of each message over its time.
struct Line {
  double latency = 0;
  double slope = 0;
};

// Solves for both unless one of them is known to be 0.
Line fit_line(const std::vector<SizedTime>& messages, bool has_latency, bool has_slope) {
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double a = 0;
  double b = 0;
  for (const SizedTime& message : messages) {
    const double x = 1 / count_ns(message.time);
    const double y = static_cast<double>(message.bytes) / count_ns(message.time);
    aa += x * x;
    ab += x * y;
    bb += y * y;
    a += x;
    b += y;
  }
  if (!has_slope || bb == 0) return {a / aa, 0};
  if (!has_latency) return {0, b / bb};
  const double determinant = aa * bb - ab * ab;
  return {(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant};
}

}  // namespace

MeasuredMessages parse_measured_messages(std::string_view text, const std::string& file) {
  MeasuredMessages measured;
  FileLines lines(text, file);
  std::set<std::int64_t> sizes;
  int last = 1;
  while (const auto line = lines.next()) {
    last = line->number;
    JsonFields fields(parse_json(line->text, file, line->number));
    const std::string part = fields.required("part").text();
    if (part == "p2p") {
      measured.messages.push_back(read_time(fields, "one_way_us"));
      sizes.insert(measured.messages.back().bytes);
    } else if (part == "all_reduce") {
      measured.all_reduces.push_back(read_time(fields, "us"));
    }
  }
  if (sizes.size() < 2) {
    throw InputError(file, last, std::to_string(sizes.size()) + " sizes of messages (p2p)",
                     "at least two");
  }
  return measured;
}

MeasuredMessages read_measured_messages(const std::filesystem::path& path) {
  return parse_measured_messages(read_text_file(path), path.string());
}

FittedLink fit_link(const std::vector<SizedTime>& messages) {
  Line line = fit_line(messages, true, true);
  if (line.slope < 0) line = fit_line(messages, true, false);
  if (line.latency < 0) line = fit_line(messages, false, true);
  FittedLink fitted;
  fitted.link.latency = Duration{static_cast<Duration::rep>(std::llround(line.latency))};
  if (line.slope > 0) {
    fitted.link.bandwidth =
        BytesPerSecond{static_cast<std::int64_t>(std::llround(1e9 / line.slope))};
  }
  for (const SizedTime& message : messages) {
    const double off = price_ns(fitted.link, message.bytes) / count_ns(message.time) - 1;
    fitted.worst_error = std::max(fitted.worst_error, std::abs(off));
  }
  return fitted;
}

Duration price_pair_reduce(const Link& link, std::int64_t bytes) {
  return Duration{static_cast<Duration::rep>(std::llround(2 * price_ns(link, bytes / 2)))};
}

}  // namespace frazil
