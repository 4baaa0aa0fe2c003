#include "policy/parse.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "policy/check.h"
#include "policy/header.h"

namespace diapason::policy {
namespace {

constexpr size_t kColumns = 10;
constexpr size_t kColumnsWithoutOptional = 8;
constexpr const char* kColumnNames[kColumns] = {
    "collective_type", "min_bytes", "max_bytes", "algorithm",  "protocol",
    "channels",        "nNodes",    "nRanks",    "numPipeOps", "regBuff"};
// One more, in files for libraries that have segment sizes.
constexpr char kSegmentColumn[] = "segmentBytes";

struct Field {
  std::string_view text;  // trimmed
  int column = 0;         // its position in the line, from 1
};

void SplitFields(std::string_view line, std::vector<Field>* fields) {
  fields->clear();
  size_t start = 0;
  while (true) {
    const size_t end = std::min(line.find(',', start), line.size());
    const std::string_view part = line.substr(start, end - start);
    const std::string_view trimmed = Trim(part);
    const char* first = trimmed.empty() ? part.data() : trimmed.data();
    fields->push_back({trimmed, static_cast<int>(first - line.data()) + 1});
    if (end == line.size()) return;
    start = end + 1;
  }
}

std::string Shown(std::string_view text) { return std::string(text.substr(0, 40)); }

// The state of one ParsePolicy call.
class Parser {
 public:
  explicit Parser(const ParseOptions& options) : options_(options) {
    outcome_.policy.library = options.library;
  }

  ParseOutcome Run(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // an editor's byte order mark
    if (text.size() > kMostBytes) {
      Error(0, Format("the policy is larger than {} bytes", kMostBytes));
      return std::move(outcome_);
    }
    // The header may be anywhere, but determines how every row is read, so it is read first.
    ForEachLine(text, [this](std::string_view line) { ReadHeaderLine(line); });
    ForEachLine(text, [this](std::string_view line) { ReadRow(line); });
    if (outcome_.errors == 0) CheckDigest();
    if (outcome_.errors == 0 && options_.check_rows) {
      for (Diagnostic& warning : CheckRules(outcome_.policy)) Add(std::move(warning));
    }
    std::stable_sort(outcome_.diagnostics.begin(), outcome_.diagnostics.end(),
                     [](const Diagnostic& a, const Diagnostic& b) { return a.line < b.line; });
    return std::move(outcome_);
  }

 private:
  template <typename Visitor>
  void ForEachLine(std::string_view text, Visitor visit) {
    line_number_ = 0;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      ++line_number_;
      visit(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }

  void Add(Diagnostic diagnostic) {
    const bool error = diagnostic.severity == Severity::kError;
    ++(error ? outcome_.errors : outcome_.warnings);
    if (outcome_.diagnostics.size() < kMostDiagnostics) {
      outcome_.diagnostics.push_back(std::move(diagnostic));
    }
  }
  void Error(int column, std::string message) {
    Add({Severity::kError, line_number_, column, std::move(message)});
  }

  void ReadHeaderLine(std::string_view line) {
    const std::string_view trimmed = Trim(line);
    if (!IsHeaderLine(trimmed)) return;
    const bool had_checksum = header_.checksum.has_value();
    const Status read = header_.Read(trimmed);
    if (!read.ok()) return Error(0, read.message());
    if (!had_checksum) header_.checksum_line = line_number_;
    if (header_.library.has_value()) {
      outcome_.policy.library = *header_.library;
      outcome_.names_library = true;
    }
    outcome_.policy.header = header_.header;
  }

  void ReadRow(std::string_view line) {
    if (line.size() > kLongestLine) {
      return Error(0, Format("the line is longer than {} bytes", kLongestLine));
    }
    if (line.find('\0') != std::string_view::npos) {
      return Error(0, "the line holds a zero byte: this is no text file");
    }
    const std::string_view row = line.substr(0, line.find('#'));
    if (Trim(row).empty()) return ReadMark(Trim(line));
    SplitFields(row, &fields_);
    const std::vector<Field>& fields = fields_;
    // Many files begin with an uncommented line of column names.
    if (outcome_.policy.rules.empty() && FoldName(fields[0].text) == "collectivetype") {
      return CheckColumnNames(fields);
    }
    if (fields.size() > Columns() || fields.size() < kColumnsWithoutOptional) {
      return Error(0,
                   Format("{} fields; a row has {} (or {} or {}, without regBuff and "
                          "numPipeOps){}",
                          fields.size(), kColumns, kColumns - 1, kColumnsWithoutOptional,
                          Columns() > kColumns ? ", and may have segmentBytes behind them" : ""));
    }
    if (outcome_.policy.rules.size() == kMostRules) {
      if (!too_many_said_) Error(0, Format("more than {} rows", kMostRules));
      too_many_said_ = true;
      return;
    }
    ReadFields(fields);
  }

  // Comments that apply to the next row.
  void ReadMark(std::string_view comment) {
    if (comment.empty()) {
      safe_ = false;
      remark_.clear();
    } else if (comment == kSafeMark) {
      safe_ = true;
    } else if (comment.starts_with(kLearnedMark)) {
      remark_ = std::string(Trim(comment.substr(kLearnedMark.size())));
    }
  }

  size_t Columns() const { return kColumns + (HasSegments(outcome_.policy.library) ? 1 : 0); }

  void CheckColumnNames(const std::vector<Field>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) {
      const char* expected = i < kColumns    ? kColumnNames[i]
                             : i < Columns() ? kSegmentColumn
                                             : "no more columns";
      if (i < Columns() && FoldName(fields[i].text) == FoldName(expected)) continue;
      return Error(fields[i].column, Format("column {} is called '{}'; expected '{}'", i + 1,
                                            Shown(fields[i].text), expected));
    }
  }

  void ReadFields(const std::vector<Field>& fields) {
    const size_t errors_before = outcome_.errors;
    const Library library = outcome_.policy.library;
    Rule rule;
    rule.line = line_number_;
    rule.safe = std::exchange(safe_, false);
    rule.remark = std::exchange(remark_, std::string());

    const Result<Collective> collective = ParseCollective(library, fields[0].text);
    if (collective.ok()) {
      rule.collective = collective.value();
    } else {
      Error(fields[0].column, collective.status().message());
    }
    const bool have_least = ReadSize(fields[1], kColumnNames[1], &rule.min_bytes);
    const bool have_most = ReadSize(fields[2], kColumnNames[2], &rule.max_bytes);
    if (have_least && have_most && rule.min_bytes > rule.max_bytes) {
      Error(fields[1].column, Format("the range is reversed: min_bytes {} is above max_bytes "
                                     "{}",
                                     rule.min_bytes, rule.max_bytes));
    }
    if (fields[3].text != "-1") {
      // An unknown collective has no list of algorithms; for every library except Open MPI, whose
      // numbers depend on it, any collective will do.
      const Result<int> algorithm = ParseAlgorithm(library, rule.collective, fields[3].text);
      if (algorithm.ok()) {
        rule.config.algorithm = algorithm.value();
      } else {
        Error(fields[3].column, algorithm.status().message());
      }
    }
    if (fields[4].text != "-1") {
      const Result<int> protocol = ParseProtocol(library, fields[4].text);
      if (protocol.ok()) {
        rule.config.protocol = protocol.value();
      } else {
        Error(fields[4].column, protocol.status().message());
      }
    }
    ReadChannels(fields[5], &rule.config.channels);
    int64_t pipe_ops = kAny;
    int64_t reg_buff = kAny;
    ReadCount(fields[6], kColumnNames[6], 1, INT32_MAX, &rule.nodes);
    ReadCount(fields[7], kColumnNames[7], 1, INT32_MAX, &rule.ranks);
    // NVIDIA's own reader accepts rows without the last one or two.
    if (fields.size() > 8) ReadCount(fields[8], kColumnNames[8], 0, INT32_MAX, &pipe_ops);
    if (fields.size() > 9) ReadCount(fields[9], kColumnNames[9], 0, 1, &reg_buff);
    rule.pipe_ops = static_cast<int>(pipe_ops);
    rule.reg_buff = static_cast<int>(reg_buff);
    if (fields.size() > kColumns) ReadSegment(fields[kColumns], &rule.config);
    auto& conditions = conditions_[static_cast<size_t>(rule.collective)];
    const bool is_new = conditions.insert({rule.pipe_ops, rule.reg_buff}).second;
    if (is_new && conditions.size() == kMostConditions + 1) {
      Error(fields.size() > kColumnsWithoutOptional ? fields[kColumnsWithoutOptional].column : 0,
            Format("the rows of one collective ask for more than {} different numPipeOps and "
                   "regBuff",
                   kMostConditions));
    }
    if (outcome_.errors == errors_before) outcome_.policy.rules.push_back(rule);
  }

  bool ReadSize(const Field& field, const char* name, uint64_t* bytes) {
    if (ParseUnsigned(field.text, bytes)) return true;
    std::string message = Format("{} '{}' is not a number of bytes", name, Shown(field.text));
    const Result<uint64_t> with_unit = ParseBytes(field.text);
    if (with_unit.ok()) {
      // Other readers of this format would parse "128M" as 128: only plain numbers are safe.
      message += Format("; write {}", with_unit.value());
    }
    Error(field.column, message);
    return false;
  }

  void ReadCount(const Field& field, const char* name, int64_t least, int64_t most,
                 int64_t* value) {
    if (ParseSigned(field.text, value) && (*value == kAny || (*value >= least && *value <= most))) {
      return;
    }
    const std::string range =
        most == INT32_MAX ? Format("a number from {}", least) : Format("{} to {}", least, most);
    Error(field.column,
          Format("{} '{}': expected {}, or -1 for any", name, Shown(field.text), range));
  }

  void ReadSegment(const Field& field, Config* config) {
    int64_t bytes = 0;
    if (!ParseSigned(field.text, &bytes) || bytes < -1 || bytes > INT32_MAX) {
      return Error(field.column,
                   Format("{} '{}': expected a number of bytes, or -1 for the library's own",
                          kSegmentColumn, Shown(field.text)));
    }
    if (bytes > 0 && config->algorithm == kKeep) {
      return Error(field.column, "a segment size needs an algorithm that it is for");
    }
    config->segment_bytes = std::max<int64_t>(bytes, 0);
  }

  void ReadChannels(const Field& field, int* channels) {
    const Library library = outcome_.policy.library;
    const int limit = ChannelLimit(library);
    int64_t value = 0;
    // NCCL and diapason read 0 as "the library's choice"; files have -1.
    if (ParseSigned(field.text, &value) && value >= -1 && value <= limit) {
      *channels = value > 0 ? static_cast<int>(value) : 0;
      return;
    }
    const std::string title(LibraryTitle(library));
    std::string message = Format("channels '{}': ", Shown(field.text));
    message += limit == 0
                   ? Format("{} has none; write -1", title)
                   : Format("expected 1 to {} for {}, or -1 for its own number", limit, title);
    if (library == Library::kNccl && value > limit && value <= ChannelLimit(Library::kRccl)) {
      message +=
          "; a policy for RCCL says library=rccl in its header, or is read with --library rccl";
    }
    Error(field.column, message);
  }

  void CheckDigest() {
    if (options_.ignore_checksum || !header_.checksum.has_value()) return;
    const uint64_t digest = Digest(outcome_.policy);
    if (digest == *header_.checksum) return;
    line_number_ = header_.checksum_line;
    Error(0,
          Format("the rows do not add up to the checksum in the header (they give {}): the file "
                 "was cut short or edited; `diapason policy convert --accept-edits` writes a new "
                 "checksum",
                 DigestText(digest)));
  }

  const ParseOptions options_;
  ParseOutcome outcome_;
  std::array<std::set<std::pair<int, int>>, kCollectiveCount> conditions_;
  HeaderReader header_;
  std::vector<Field> fields_;  // of the current line; reused to save allocations
  int line_number_ = 0;
  bool safe_ = false;  // marks on the lines before the current row
  std::string remark_;
  bool too_many_said_ = false;
};

}  // namespace

std::string DiagnosticText(const std::string& file, const Diagnostic& diagnostic) {
  std::string place = file;
  if (diagnostic.line > 0) place += Format(":{}", diagnostic.line);
  if (diagnostic.column > 0) place += Format(":{}", diagnostic.column);
  const bool error = diagnostic.severity == Severity::kError;
  return place + (error ? ": error: " : ": warning: ") + diagnostic.message;
}

ParseOutcome ParsePolicy(std::string_view text, const ParseOptions& options) {
  return Parser(options).Run(text);
}

Result<Policy> ParseStrictly(std::string_view text, const std::string& file,
                             const ParseOptions& options) {
  ParseOptions errors_only = options;
  errors_only.check_rows = false;
  ParseOutcome outcome = ParsePolicy(text, errors_only);
  if (outcome.errors == 0) return std::move(outcome.policy);
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    if (diagnostic.severity != Severity::kError) continue;
    std::string message = DiagnosticText(file, diagnostic);
    if (outcome.errors > 1) {
      message += Format(" (and {})", Count(outcome.errors - 1, "more error"));
    }
    return Invalid(message);
  }
  return Internal(file + ": errors were counted and none was kept");
}

}  // namespace diapason::policy
