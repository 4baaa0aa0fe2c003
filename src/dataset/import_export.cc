// Reads the output of `diapason data export --format csv`.
#include <cmath>
#include <limits>
#include <map>

#include "base/text.h"
#include "dataset/csv.h"
#include "dataset/export.h"
#include "dataset/export_columns.h"
#include "dataset/import.h"
#include "dataset/words.h"

namespace diapason::dataset {
namespace {

using Cells = std::vector<std::string>;

// Reads cells from left to right; remembers the first invalid one.
class CellReader {
 public:
  CellReader(const Cells& cells, const std::vector<std::string_view>& titles)
      : cells_(cells), titles_(titles) {}

  std::string Text() { return cells_[at_++]; }
  double Number(bool optional) {
    const std::string& cell = cells_[at_];
    double value = std::numeric_limits<double>::quiet_NaN();
    double half = 0;
    if (!(cell.empty() && optional) && !ParseDecimal(cell, &value, &half)) Refuse();
    ++at_;
    return value;
  }
  template <typename Integer>
  Integer Whole(int64_t low, int64_t high) {
    int64_t value = 0;
    if (!ParseSigned(cells_[at_], &value) || value < low || value > high) Refuse();
    ++at_;
    return static_cast<Integer>(value);
  }
  int OneOf(std::initializer_list<const char*> names) {
    const std::string& cell = cells_[at_++];
    int index = 0;
    for (const char* name : names) {
      if (cell == name) return index;
      ++index;
    }
    --at_;
    Refuse();
    ++at_;
    return 0;
  }
  Status status() const { return status_; }

 private:
  void Refuse() {
    if (!status_.ok()) return;
    status_ = Invalid(
        Format("'{}' under '{}' cannot be", Printable(cells_[at_], 40), std::string(titles_[at_])));
  }
  const Cells& cells_;
  const std::vector<std::string_view>& titles_;
  size_t at_ = 0;
  Status status_;
};

constexpr int64_t kIntMax = std::numeric_limits<int>::max();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

SampleRun ReadRun(CellReader* cells) {
  SampleRun run;
  run.id = cells->Text();
  run.source = cells->Text();
  run.origin = cells->Text();
  run.started = cells->Number(false);
  run.state = static_cast<SampleRun::State>(cells->OneOf({"running", "done", "interrupted"}));
  run.plan = cells->Text();
  MachineInfo& machine = run.machine;
  for (std::string* text : {&machine.library, &machine.library_version, &machine.gpu,
                            &machine.driver, &machine.topology, &machine.hosts, &machine.tool}) {
    *text = cells->Text();
  }
  machine.simulated = cells->OneOf({"0", "1"}) == 1;
  machine.environment = ParseEnvironmentText(cells->Text());
  return run;
}

Sample ReadSample(CellReader* cells) {
  Sample sample;
  Point& point = sample.point;
  point.kind = static_cast<Point::Kind>(cells->OneOf({"collective", "iteration"}));
  point.collective = cells->Text();
  point.bytes = cells->Whole<uint64_t>(0, kMost);
  point.nodes = cells->Whole<int>(1, kIntMax);
  point.ranks = cells->Whole<int>(1, kIntMax);
  point.type = cells->Text();
  point.reduce = cells->Text();
  point.root = cells->Whole<int>(-1, kIntMax);
  point.in_place = cells->OneOf({"0", "1"}) == 1;
  point.algorithm = cells->Text();
  point.protocol = cells->Text();
  point.channels = cells->Whole<int>(0, kIntMax);
  point.segment_bytes = cells->Whole<int64_t>(0, kMost);
  point.environment = cells->Text();
  point.workload = cells->Text();
  sample.round = cells->Whole<int>(0, kIntMax);
  sample.seconds = cells->Number(true);
  sample.coarse = cells->Number(false);
  sample.iterations = cells->Whole<int64_t>(0, kMost);
  sample.wrong = cells->Whole<int64_t>(-1, kMost);
  sample.outcome =
      static_cast<SampleOutcome>(cells->OneOf({"fine", "wrong", "hang", "crash", "refused"}));
  sample.note = cells->Text();
  sample.at = cells->Number(false);
  return sample;
}

bool SameRun(const SampleRun& a, const SampleRun& b) {
  return a.source == b.source && a.origin == b.origin && a.started == b.started &&
         a.state == b.state && a.plan == b.plan && a.machine == b.machine;
}

}  // namespace

Result<Import> ImportExport(std::string_view text, const std::string& name) {
  Import import;
  import.format = "diapason's export";
  const std::vector<std::string_view> titles = Split(kExportTitles, ',');
  std::map<std::string, size_t> known;
  int line = 0;
  bool first = true;
  while (!text.empty()) {
    ASSIGN_OR_RETURN(Cells row, TakeCsvRow(&text, &line));
    const Cells& cells = row;
    if (cells.size() == 1 && Trim(cells[0]).empty()) continue;
    if (first) {
      first = false;
      if (Join(cells, ",") != kExportTitles) {
        return Invalid("its columns are not those this version of diapason writes");
      }
      continue;
    }
    const auto wrong = [&](const std::string& why) {
      return Invalid(Format("line {}: {}", line, why));
    };
    if (cells.size() != titles.size()) {
      return wrong(Format("{} values under {} titles", cells.size(), titles.size()));
    }
    CellReader reader(cells, titles);
    SampleRun run = ReadRun(&reader);
    if (!reader.status().ok()) return wrong(reader.status().message());
    if (run.id.empty()) return wrong("the run has no name");
    const auto [at, is_new] = known.try_emplace(run.id, import.runs.size());
    if (is_new) {
      import.runs.push_back({run, {}});
    } else if (!SameRun(run, import.runs[at->second].run)) {
      return wrong("run '" + Printable(run.id, 60) + "' is described differently further up");
    }
    if (cells[kRunColumns].empty()) continue;  // a run without samples
    Sample sample = ReadSample(&reader);
    if (!reader.status().ok()) return wrong(reader.status().message());
    import.runs[at->second].samples.push_back(std::move(sample));
    ++import.rows;
  }
  if (import.runs.empty()) import.messages.push_back("'" + Printable(name) + "' holds no runs");
  return import;
}

}  // namespace diapason::dataset
