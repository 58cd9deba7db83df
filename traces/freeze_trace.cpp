#include "traces/freeze_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"
#include "traces/freeze_trace_names.h"

namespace frazil {
namespace {

constexpr int kMaximumInt = std::numeric_limits<int>::max();
constexpr std::int64_t kMaximumInteger = std::numeric_limits<std::int64_t>::max();
// Half the range, so that a step and a number of steps can be added.
constexpr Step kLastStep = kMaximumInteger / 2;
constexpr double kLargestReal = std::numeric_limits<double>::max();

using What = decltype(FreezeEvent::what);

Duration read_time(JsonFields& fields, const char* key) {
  return Duration{fields.required(key).integer(0, kMaximumInteger)};
}

double read_real(JsonFields& fields, const char* key) {
  return fields.required(key).real(-kLargestReal, kLargestReal);
}

MaskEvent read_mask(JsonFields& fields, std::size_t blocks) {
  const JsonCursor bits = fields.required("mask");
  FreezeMask mask = FreezeMask::parse(bits);
  if (static_cast<std::size_t>(mask.blocks()) != blocks) {
    bits.fail(fmt::format("a mask of {} blocks", mask.blocks()),
              fmt::format("a mask of {} blocks", blocks));
  }
  MaskEvent event{std::move(mask)};
  if (const auto by = fields.optional("by")) {
    event.by = by->text();
    if (event.by.empty()) by->fail("an empty text", "who decided");
    event.reason = fields.required("reason").text();
  }
  return event;
}

PlanEvent read_plan(JsonFields& fields) {
  PlanEvent event;
  event.plan = fields.required("plan").text();
  event.summary = fields.required("summary").text();
  event.predicted_step = read_time(fields, "predicted_step_ns");
  if (const auto flag = fields.optional("extrapolated")) event.extrapolated = flag->boolean();
  if (const auto size = fields.optional("batch_size")) {
    event.batch_size = static_cast<int>(size->integer(1, kMaximumInt));
  }
  return event;
}

TransitionEvent read_transition(JsonFields& fields) {
  TransitionEvent event;
  event.plan_time = read_time(fields, "plan_time_ns");
  event.move_time = read_time(fields, "move_time_ns");
  event.start_time = read_time(fields, "start_time_ns");
  event.moved = Bytes{fields.required("moved_bytes").integer(0, kMaximumInteger)};
  if (fields.optional("predicted_plan_time_ns")) {
    event.predicted = {read_time(fields, "predicted_plan_time_ns"),
                       read_time(fields, "predicted_move_time_ns"),
                       read_time(fields, "predicted_start_time_ns")};
  }
  return event;
}

CostEvent read_cost(JsonFields& fields) {
  CostEvent event;
  event.steps = fields.required("steps").integer(0, kLastStep);
  event.samples = fields.required("samples").integer(0, kMaximumInteger);
  event.measured = read_time(fields, "measured_ns");
  return event;
}

EvalEvent read_eval(JsonFields& fields) {
  EvalEvent event;
  event.epoch = static_cast<int>(fields.required("epoch").integer(0, kMaximumInt));
  event.train_loss = read_real(fields, "train_loss");
  event.loss = read_real(fields, "loss");
  if (const auto accuracy = fields.optional("accuracy")) event.accuracy = accuracy->real(0, 1);
  if (const auto loss = fields.optional("validation_loss")) {
    event.validation = PartScore{loss->real(-kLargestReal, kLargestReal)};
    if (event.accuracy) {
      event.validation->accuracy = fields.required("validation_accuracy").real(0, 1);
    }
  }
  return event;
}

SignalsEvent read_signals(JsonFields& fields) {
  JsonFields signals(fields.required("signals"));
  SignalsEvent event;
  for (const std::string& name : signals.keys())
    event.signals[name] = read_real(signals, name.c_str());
  return event;
}

StepEvent read_step(JsonFields& fields) {
  StepEvent event;
  event.loss = read_real(fields, "loss");
  event.samples = fields.required("samples").integer(0, kMaximumInteger);
  event.time = read_time(fields, "time_ns");
  return event;
}

CacheEvent read_cache(JsonFields& fields) {
  CacheEvent event;
  const JsonCursor change = fields.required("event");
  const auto* const name =
      std::find(kCacheChanges.begin(), kCacheChanges.end(), std::string_view(change.text()));
  if (name == kCacheChanges.end()) {
    change.fail(change.describe(), "declined, begun, filled, full, left, checked or read");
  }
  event.change = static_cast<CacheChange>(name - kCacheChanges.begin());
  event.layers = static_cast<int>(fields.required("layers").integer(0, kMaximumInt));
  event.samples = fields.required("samples").integer(0, kMaximumInteger);
  event.memory = Bytes{fields.required("memory_bytes").integer(0, kMaximumInteger)};
  event.disk = Bytes{fields.required("disk_bytes").integer(0, kMaximumInteger)};
  event.predicted = read_time(fields, "predicted_ns");
  event.measured = read_time(fields, "measured_ns");
  event.note = fields.required("note").text();
  return event;
}

MembersEvent read_members(JsonFields& fields) {
  MembersEvent event;
  const JsonCursor change = fields.required("event");
  const auto* const name =
      std::find(kMembersChanges.begin(), kMembersChanges.end(), std::string_view(change.text()));
  if (name == kMembersChanges.end()) {
    change.fail(change.describe(), "lost, recovered, came, suspected or heard");
  }
  event.change = static_cast<MembersChange>(name - kMembersChanges.begin());
  event.devices = static_cast<int>(fields.required("devices").integer(0, kMaximumInt));
  event.note = fields.required("note").text();
  if (event.change != MembersChange::kRecovered) return event;
  event.times = RecoveryTimes{.plan_ready = fields.required("plan_ready").boolean(),
                              .detection = read_time(fields, "detection_ns"),
                              .plan = read_time(fields, "plan_ns"),
                              .transfer = read_time(fields, "transfer_ns"),
                              .first_step = read_time(fields, "first_step_ns")};
  return event;
}

CheckpointEvent read_checkpoint(JsonFields& fields, Step step) {
  CheckpointEvent event{.of = step};
  if (const auto of = fields.optional("of")) event.of = of->integer(0, step);
  event.time = read_time(fields, "time_ns");
  return event;
}

What read_what(const JsonCursor& kind, JsonFields& fields, std::size_t blocks, Step step) {
  const std::string& name = kind.text();
  if (name == "mask") return read_mask(fields, blocks);
  if (name == "plan") return read_plan(fields);
  if (name == "transition") return read_transition(fields);
  if (name == "cost") return read_cost(fields);
  if (name == "eval") return read_eval(fields);
  if (name == "signals") return read_signals(fields);
  if (name == "step") return read_step(fields);
  if (name == kCacheKind) return read_cache(fields);
  if (name == kMembersKind) return read_members(fields);
  if (name == kDriftKind) return read_drift(fields);
  if (name == kDevicesKind) return read_devices(fields);
  if (name == "checkpoint") return read_checkpoint(fields, step);
  kind.fail(kind.describe(),
            "mask, plan, transition, cost, eval, signals, step, checkpoint or a kind of x-...");
}

struct Header {
  FreezeTrace trace;  // its events are read after the header
  std::optional<std::int64_t> events;
};

Header read_header(const JsonCursor& line) {
  JsonFields fields(line);
  expect_format(fields, kFreezeTraceFormat, kFreezeTraceVersion);
  Header header;
  FreezeTrace& trace = header.trace;
  trace.model_hash = fields.required("model_hash").text();
  for (const JsonCursor& block : fields.required("blocks").items()) {
    trace.blocks.push_back(block.text());
  }
  trace.steps = fields.required("steps").integer(0, kLastStep);
  if (const auto open = fields.optional("open")) header.trace.open = open->boolean();
  if (const auto events = fields.optional("events")) {
    header.events = events->integer(0, kMaximumInteger);
  }
  trace.batch_size = static_cast<int>(fields.required("batch_size").integer(0, kMaximumInt));
  JsonFields provenance(fields.required("provenance"));
  for (const std::string& key : provenance.keys()) {
    trace.provenance[key] = provenance.required(key).text();
  }
  fields.finish();
  return header;
}

void read_event(const JsonCursor& line, FreezeTrace& trace, Step& last_step) {
  JsonFields fields(line);
  const JsonCursor step = fields.required("step");
  const Step number = step.integer(0, kLastStep);
  if (number < last_step) {
    step.fail(step.describe(), fmt::format("a step not before {}", last_step));
  }
  last_step = number;
  const JsonCursor kind = fields.required("kind");
  if (kind.text().substr(0, 2) == "x-" && !is_known_extension(kind.text())) {
    ++trace.skipped_extensions;
    return;
  }
  trace.events.push_back({number, read_what(kind, fields, trace.blocks.size(), number)});
  fields.finish();
}

// Refuses a cut file. Cut between two lines, a file reads like a whole one, so events are counted.
void refuse_cut(const Header& header, const std::string& file, int last_line) {
  if (header.trace.open) return;
  const std::vector<FreezeEvent>& events = header.trace.events;
  const std::int64_t count = count_events(header.trace);
  if (header.events) {
    if (count == *header.events) return;
    throw InputError(file, last_line, fmt::format("the end of the file after event {}", count),
                     fmt::format("the {} events that its first line announces", *header.events));
  }
  const bool is_record = std::any_of(events.begin(), events.end(), [](const FreezeEvent& event) {
    return !std::holds_alternative<MaskEvent>(event.what) &&
           !std::holds_alternative<SignalsEvent>(event.what) && is_counted(event);
  });
  if (!is_record || events.back().step >= header.trace.steps) return;
  throw InputError(
      file, last_line, fmt::format("the end of the file at step {}", events.back().step),
      fmt::format("an event at step {}, the end of the run by its first line", header.trace.steps));
}

// Parses one line. On line 1, an object that does not end there means a file of another kind, and
// the error says so.
JsonCursor parse_line(std::string_view text, const std::string& file, int line) {
  try {
    return parse_json(text, file, line);
  } catch (const InputError& error) {
    if (line > 1 || error.found() != "unexpected end of the text") throw;
    throw InputError(file, line, "no JSON object that ends on the line",
                     "a freeze trace, an object on each line");
  }
}

}  // namespace

FreezeTrace parse_freeze_trace(std::string_view text, const std::string& file) {
  Header header;
  Step last_step = 0;
  int line = 0;
  while (line == 0 || !text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const JsonCursor value = parse_line(text.substr(0, end), file, line);
    if (line == 1) {
      header = read_header(value);
    } else {
      read_event(value, header.trace, last_step);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  refuse_cut(header, file, line);
  return std::move(header.trace);
}

FreezeTrace read_freeze_trace(const std::filesystem::path& path) {
  return parse_freeze_trace(read_text_file(path), path.string());
}

}  // namespace frazil
