#include "exec/checkpoint/read_journal.h"

#include <algorithm>
#include <optional>
#include <string>

#include "exec/disk/hashes.h"

namespace frazil {
namespace {

constexpr std::size_t kHashDigits = 16;  // digits of the hash that ends a line

// Makes the contents such that the line continues them, as it did before lines were damaged.
void make_room(const JournalLine& line, JournalContents& contents) {
  const bool goes_back = line.kind == JournalKind::kStep || line.kind == JournalKind::kLost;
  // Between them steps were begun anew.
  if (goes_back && line.step < contents.steps) drop_from(line.step, contents);
  contents.steps = std::max(contents.steps, line.step);
}

// Returns whether a text begins as a first line does before its hash.
bool begins_like(std::string_view text, std::string_view header) {
  const std::size_t before = kJournalLineBytes - kHashDigits - 1;
  return text.size() >= kJournalLineBytes && text.substr(0, before) == header.substr(0, before);
}

// Reads line after line. Behind one that does not hold it looks for the next that does.
class LineReader {
 public:
  LineReader(std::string_view text, const std::string& header)
      : text_(text), header_hash_(hash_in_line(header)) {
    const bool is_begun = text_.substr(0, kJournalLineBytes) == header;
    reading_.last_hash = header_hash_;
    is_linked_ = is_begun || states_header_hash();
    is_broken_ = reading_.is_damaged = !is_begun;
    if (is_begun) {
      reading_.whole_bytes = kJournalLineBytes;
      trusted_ = header_hash_;
    }
  }

  JournalReading read() {
    for (std::size_t place = is_broken_ ? next_place(0) : kJournalLineBytes;
         place + kJournalLineBytes <= text_.size();) {
      place = take(place) ? place + kJournalLineBytes : next_place(place);
    }
    if (!is_linked_) reading_.contents = {};
    if (text_.size() - reading_.whole_bytes > kJournalLineBytes) reading_.is_damaged = true;
    return reading_;
  }
  // True if the lines that were read are of the run of the first line.
  bool is_linked() const { return is_linked_; }

 private:
  struct Pending {
    JournalLine line;
    std::uint64_t hash;  // as it should be
  };

  bool states_header_hash() const {
    return text_.size() >= kJournalLineBytes &&
           stated_hash(text_.substr(0, kJournalLineBytes)) == header_hash_;
  }

  // Lines have lost or won bytes, or an end of line: each place is tried at which one may begin.
  std::size_t next_place(std::size_t place) const {
    const std::size_t end = text_.find('\n', place);
    return std::min(place + kJournalLineBytes,
                    end == std::string_view::npos ? text_.size() : end + 1);
  }

  // Returns the hash of a line that holds after the line before it, whichever part of that was
  // damaged.
  std::optional<std::uint64_t> hash_at(std::size_t place) {
    const std::string_view line = text_.substr(place, kJournalLineBytes);
    if (trusted_) {
      if (const auto hash = sealed_hash(line, *trusted_)) return hash;
    }
    if (pending_) {
      if (const auto hash = sealed_hash(line, pending_->hash)) {
        add(pending_->line);  // the damage is in the hash alone
        return hash;
      }
    }
    if (!is_linked_) {
      if (const auto hash = sealed_hash(line, header_hash_)) {
        is_linked_ = true;
        return hash;
      }
    }
    if (place < kHashDigits + 1) return std::nullopt;
    const auto stated = parse_hex(text_.substr(place - kHashDigits - 1, kHashDigits));
    return stated ? sealed_hash(line, *stated) : std::nullopt;
  }

  bool take(std::size_t place) {
    const std::string_view text = text_.substr(place, kJournalLineBytes);
    const auto hash = hash_at(place);
    const auto line = parse_journal_line(text);
    if (hash && line && add(*line)) {
      trusted_ = hash;
      pending_.reset();
      if (!is_broken_) {
        reading_.whole_bytes = place + kJournalLineBytes;
        reading_.last_hash = *hash;
      }
      return true;
    }
    is_broken_ = true;
    pending_.reset();
    if (trusted_ && line) pending_ = Pending{*line, computed_hash(text, *trusted_)};
    trusted_.reset();
    return false;
  }

  bool add(const JournalLine& line) {
    JournalContents& contents = reading_.contents;
    if (!continues(line, contents)) {
      if (!is_broken_) return false;
      make_room(line, contents);
      if (!continues(line, contents)) return false;
    }
    if (is_broken_) reading_.is_damaged = true;
    if (line.kind == JournalKind::kStep) {
      contents.records.push_back({line.step, line.loss_bits, line.value});
    }
    add_line(line, contents);
    return true;
  }

  std::string_view text_;
  std::uint64_t header_hash_;
  std::optional<std::uint64_t> trusted_;  // the hash of the line before, if that holds
  std::optional<Pending> pending_;        // the line before, if nothing but its hash may be wrong
  bool is_linked_ = false;                // lines belong to this run
  bool is_broken_ = false;
  JournalReading reading_;
};

// Returns the version of a text whose first line does not hold: the one from whose first line its
// lines follow, or else the one whose first line it begins like.
int find_version(std::string_view text, std::uint64_t run_hash) {
  for (int version = kJournalVersion; version >= 1; --version) {
    LineReader reader(text, journal_header(run_hash, version));
    (void)reader.read();
    if (reader.is_linked()) return version;
  }
  return begins_like(text, journal_header(run_hash, 1)) ? 1 : kJournalVersion;
}

}  // namespace

JournalReading read_journal(std::string_view text, std::uint64_t run_hash) {
  const auto stated = text.size() < kJournalLineBytes
                          ? std::nullopt
                          : parse_header(text.substr(0, kJournalLineBytes));
  JournalReading reading;
  reading.is_of_another_run = stated && stated->run_hash != run_hash;
  const int version = stated ? stated->version : find_version(text, run_hash);
  reading.version = version;
  if (version > kJournalVersion || reading.is_of_another_run) return reading;
  reading = LineReader(text, journal_header(run_hash, version)).read();
  reading.version = version;
  return reading;
}

}  // namespace frazil
