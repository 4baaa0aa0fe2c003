#include "compare/side.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "dataset/import.h"
#include "dataset/import_journal.h"
#include "dataset/words.h"
#include "traces/inspector.h"

namespace diapason::compare {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestFile = size_t{256} << 20;
constexpr size_t kLargestJournal = size_t{4} << 30;
constexpr size_t kMostFiles = 20'000;
constexpr int kDeepest = 6;
constexpr size_t kMostNamed = 5;
constexpr std::string_view kStoreStart = "SQLite format 3";

std::string Shown(const std::string& path) { return "'" + dataset::Printable(path) + "'"; }

enum class InputFormat { kStore, kJournal, kInspector, kOther };

Result<InputFormat> FormatOf(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return IoError("cannot open " + Shown(path) + ": " + ErrnoText(errno));
  std::string start(4096, '\0');
  start.resize(std::fread(start.data(), 1, start.size(), file));
  std::fclose(file);
  if (start.starts_with(kStoreStart)) return InputFormat::kStore;
  if (start.starts_with(dataset::kJournalMark)) return InputFormat::kJournal;
  return traces::IsInspectorDump(start) ? InputFormat::kInspector : InputFormat::kOther;
}

struct InputFile {
  std::string path;
  bool named = false;  // by the user, not found in a folder
};

// The files of the paths, sorted within each folder.
Result<std::vector<InputFile>> FilesOf(const std::vector<std::string>& paths) {
  std::vector<InputFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) return NotFound(Shown(path) + ": no such file or folder");
    if (fs::is_regular_file(status)) {
      files.push_back({path, true});
      continue;
    }
    if (!fs::is_directory(status)) return Invalid(Shown(path) + " is neither a file nor a folder");
    std::vector<std::string> found;
    for (auto at = fs::recursive_directory_iterator(
             path, fs::directory_options::skip_permission_denied, error);
         !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      if (at.depth() >= kDeepest) at.disable_recursion_pending();
      std::error_code ignored;
      if (at->is_regular_file(ignored)) found.push_back(at->path().string());
      if (found.size() > kMostFiles) {
        return Invalid(Shown(path) + " has more than " + std::to_string(kMostFiles) + " files");
      }
    }
    if (error) return IoError("cannot read " + Shown(path) + ": " + error.message());
    std::sort(found.begin(), found.end());
    for (std::string& one : found) files.push_back({std::move(one), false});
  }
  return files;
}

class SideReader {
 public:
  explicit SideReader(Side* side) : side_(side) {}

  Status Read(const InputFile& file) {
    const Result<InputFormat> format = FormatOf(file.path);
    if (!format.ok()) return file.named ? format.status() : Pass(file);
    const std::string folder = fs::path(file.path).parent_path().string();
    switch (format.value()) {
      case InputFormat::kStore:
        return ReadStore(file);
      case InputFormat::kJournal:
        journals_[folder].push_back(file.path);
        return {};
      case InputFormat::kInspector:
        dumps_[folder].push_back(file.path);
        return {};
      case InputFormat::kOther:
        break;
    }
    return ReadPlain(file);
  }

  Status Finish() {
    for (const auto& [folder, files] : journals_) RETURN_IF_ERROR(ReadJournals(files));
    for (const auto& [folder, files] : dumps_) RETURN_IF_ERROR(ReadDumps(files));
    if (passed_ > 0) {
      Tell(Count(passed_, "file") + " without measurements passed over: " +
           Join(passed_names_, ", ") + (passed_ > passed_names_.size() ? ", ..." : ""));
    }
    return {};
  }

 private:
  void Tell(const std::string& text) { side_->notes.push_back(dataset::Printable(text, 500)); }

  Status Pass(const InputFile& file) {
    if (passed_++ < kMostNamed) {
      passed_names_.push_back(fs::path(file.path).filename().string());
    }
    return {};
  }

  Status ReadStore(const InputFile& file) {
    auto store = dataset::SampleStore::Open(file.path, dataset::SampleStore::Access::kRead);
    if (!store.ok()) return file.named ? store.status() : Pass(file);
    ASSIGN_OR_RETURN(const dataset::StoreContents contents, store.value()->Read());
    AddRuns(contents, file.path, false, side_);
    return {};
  }

  Status ReadPlain(const InputFile& file) {
    Result<std::string> text = ReadFile(file.path, kLargestFile);
    if (!text.ok()) return file.named ? text.status() : Pass(file);
    Result<dataset::Import> import = dataset::ImportText(text.value(), file.path, {});
    if (!import.ok()) return file.named ? import.status() : Pass(file);
    TellAll(import.value(), file.path);
    AddRuns(dataset::ContentsOf(std::move(import).value()), file.path, false, side_);
    return {};
  }

  Status ReadJournals(const std::vector<std::string>& files) {
    dataset::JournalImport journals({});
    for (const std::string& file : files) {
      ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestJournal));
      RETURN_IF_ERROR(journals.Add(text, file));
    }
    ASSIGN_OR_RETURN(dataset::Import import, journals.Finish());
    TellAll(import, files.front());
    AddRuns(dataset::ContentsOf(std::move(import)), files.front(), true, side_);
    return {};
  }

  Status ReadDumps(const std::vector<std::string>& files) {
    traces::InspectorImport dumps;
    for (const std::string& file : files) {
      ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestFile));
      dumps.Add(text, file);
    }
    ASSIGN_OR_RETURN(dataset::Import import, dumps.Finish());
    TellAll(import, files.front());
    AddRuns(dataset::ContentsOf(std::move(import)), files.front(), true, side_);
    for (const auto& [point, words] : dumps.ran()) {
      side_->calls[point].ran.insert(words.begin(), words.end());
    }
    return {};
  }

  void TellAll(const dataset::Import& import, const std::string& path) {
    for (const std::string& message : import.messages) Tell(path + ": " + message);
  }

  Side* side_;
  std::map<std::string, std::vector<std::string>> journals_;  // by folder
  std::map<std::string, std::vector<std::string>> dumps_;
  size_t passed_ = 0;
  std::vector<std::string> passed_names_;
};

}  // namespace

void AddRuns(const dataset::StoreContents& contents, const std::string& name, bool together,
             Side* side) {
  struct Collected {
    std::vector<double> seconds;
    double coarse = 0;
  };
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> places(contents.runs.size(), kNone);  // into side->launches
  const size_t first = side->launches.size();
  for (size_t i = 0; i < contents.runs.size(); ++i) {
    const dataset::SampleRun& run = contents.runs[i];
    if (!side->runs.insert(run.id).second) {
      side->notes.push_back(
          dataset::Printable("run " + run.id + " is there twice, and counts once", 300));
      continue;
    }
    if (together && side->launches.size() > first) {
      places[i] = first;
      continue;
    }
    places[i] = side->launches.size();
    const std::string part = contents.runs.size() > 1 && !together ? ", run " + run.id : "";
    side->launches.push_back({dataset::Printable(name + part), run.started, run.machine});
  }
  std::map<dataset::Point, std::map<size_t, Collected>> found;
  for (const dataset::StoredSample& record : contents.records) {
    const size_t place = places[record.run];
    if (place == kNone) continue;
    const dataset::Sample& sample = record.sample;
    CallOfSide& call = side->calls[sample.point];
    Launch& launch = side->launches[place];
    if (!(launch.started > 0)) launch.started = sample.at;
    if (sample.outcome != dataset::SampleOutcome::kFine || !(sample.seconds > 0)) {
      ++call.failed;
      continue;
    }
    Collected& collected = found[sample.point][place];
    collected.seconds.push_back(sample.seconds);
    collected.coarse = std::max(collected.coarse, sample.coarse);
  }
  for (const auto& [point, by_launch] : found) {
    for (const auto& [place, collected] : by_launch) {
      side->calls[point].figures.push_back(
          FigureOf(collected.seconds, collected.coarse, side->launches[place].started));
    }
  }
}

Result<Side> ReadSide(const std::vector<std::string>& paths) {
  Side side;
  side.name = Join(paths, ", ");
  ASSIGN_OR_RETURN(const std::vector<InputFile> files, FilesOf(paths));
  SideReader reader(&side);
  for (const InputFile& file : files) RETURN_IF_ERROR(reader.Read(file));
  RETURN_IF_ERROR(reader.Finish());
  const bool timed = std::any_of(side.calls.begin(), side.calls.end(),
                                 [](const auto& call) { return !call.second.figures.empty(); });
  if (!timed) {
    return Invalid("no time of any call in '" + dataset::Printable(side.name) +
                   "': stores, journals, dumps of NCCL Inspector, and logs and JSON of nccl-tests "
                   "and rccl-tests have them");
  }
  return side;
}

}  // namespace diapason::compare
