#include "report/inputs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/host_name.h"
#include "base/text.h"
#include "dataset/import.h"
#include "dataset/import_journal.h"
#include "dataset/words.h"
#include "doctor/checklist.h"
#include "doctor/checks.h"
#include "doctor/this_machine.h"
#include "policy/parse.h"

namespace diapason::report {
namespace {

constexpr size_t kLargestFile = size_t{256} << 20;
constexpr std::string_view kStoreStart = "SQLite format 3";

class InputReader {
 public:
  InputReader(PageInput* page, std::vector<std::string>* warnings)
      : page_(page), warnings_(warnings) {}

  Status Read(const std::string& path) {
    ASSIGN_OR_RETURN(const std::string start, StartOf(path));
    if (start.starts_with(kStoreStart)) return ReadStoreFile(path);
    if (start.starts_with(dataset::kJournalMark)) return ReadJournalFile(path);
    return ReadPlainFile(path);
  }

 private:
  Status ReadStoreFile(const std::string& path) {
    ASSIGN_OR_RETURN(std::unique_ptr<dataset::SampleStore> store,
                     dataset::SampleStore::Open(path, dataset::SampleStore::Access::kRead));
    ASSIGN_OR_RETURN(dataset::StoreContents read, store->Read());
    if (read.records.empty()) Tell("'" + path + "' contains no samples");
    Take(std::move(read), path);
    return {};
  }

  Status ReadJournalFile(const std::string& path) {
    ASSIGN_OR_RETURN(journal::JournalContents read, journal::ReadJournal(path));
    if (read.bad_lines > 0) {
      Tell(Format("'{}': {} could not be read, the first is line {}", path,
                  Count(read.bad_lines, "line"), read.first_bad_line));
    }
    page_->journals.push_back({path, std::move(read)});
    return {};
  }

  Status ReadPlainFile(const std::string& path) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
    ASSIGN_OR_RETURN(dataset::Import import, dataset::ImportText(text, path, {}));
    for (std::string message : import.messages) {
      // This command has no such option; `data import` has it.
      constexpr std::string_view kGive = ": give --library";
      if (message.ends_with(kGive)) {
        message.resize(message.size() - kGive.size());
        message += "; use `diapason data import --library`";
      }
      Tell(path + ": " + message);
    }
    Take(dataset::ContentsOf(std::move(import)), path);
    return {};
  }

  void Take(dataset::StoreContents contents, const std::string& path) {
    constexpr size_t kTwice = SIZE_MAX;
    std::vector<size_t> places;
    for (dataset::SampleRun& run : contents.runs) {
      if (!runs_.insert(run.id).second) {
        Tell("run " + run.id + " of '" + path + "' is in another input too, and is counted once");
        places.push_back(kTwice);
        continue;
      }
      places.push_back(page_->contents.runs.size());
      page_->contents.runs.push_back(std::move(run));
    }
    for (dataset::StoredSample& record : contents.records) {
      const size_t place = places[record.run];
      if (place != kTwice) page_->contents.records.push_back({place, std::move(record.sample)});
    }
  }

  void Tell(const std::string& text) { warnings_->push_back(dataset::Printable(text, 500)); }

  PageInput* page_;
  std::vector<std::string>* warnings_;
  std::set<std::string> runs_;
};

}  // namespace

Result<std::string> StartOf(const std::string& path) {
  const std::string shown = "'" + dataset::Printable(path) + "'";
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return NotFound(shown + ": no such file");
  if (!std::filesystem::is_regular_file(status)) {
    return Invalid(shown + " is not a file: give stores, journals, logs or tables");
  }
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return IoError("cannot open " + shown + ": " + ErrnoText(errno));
  std::string start(64, '\0');
  start.resize(std::fread(start.data(), 1, start.size(), file));
  std::fclose(file);
  return start;
}

Status ReadReportInputs(const std::vector<std::string>& files, PageInput* page,
                        std::vector<std::string>* warnings) {
  InputReader reader(page, warnings);
  for (const std::string& file : files) {
    RETURN_IF_ERROR(reader.Read(file));
  }
  // A journal of which only the first line could be read is none.
  const auto readable = [](const PageInput::Journal& journal) {
    const journal::JournalContents& contents = journal.contents;
    return contents.bad_lines == 0 || !contents.records.empty() || !contents.communicators.empty();
  };
  if (page->contents.records.empty() && !page->journals.empty() &&
      std::none_of(page->journals.begin(), page->journals.end(), readable)) {
    const PageInput::Journal& first = page->journals.front();
    return Invalid(Format(
        "nothing to report: '{}' starts like a journal, but none of its other {} can be read; the "
        "first, line {}: {}",
        dataset::Printable(first.name), Count(first.contents.bad_lines, "line"),
        first.contents.first_bad_line, first.contents.first_bad_why));
  }
  if (page->contents.records.empty() && page->journals.empty()) {
    return Invalid("nothing to report: no input contains a sample or a journal");
  }
  return {};
}

Status ReadReportPolicies(const std::vector<std::string>& files, PageInput* page) {
  policy::ParseOptions options;
  bool measured = false;
  for (const dataset::SampleRun& run : page->contents.runs) {
    const Result<Library> library = ParseLibrary(run.machine.library);
    if (!library.ok()) continue;
    options.library = library.value();
    measured = true;
    break;
  }
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file, policy::kMostBytes));
    Result<policy::Policy> policy = policy::ParseStrictly(text, file, options);
    if (!policy.ok() && measured && !policy::ParsePolicy(text, options).names_library) {
      return Invalid(
          policy.status().message() +
          Format(" (the policy names no library and was read as a policy for {}, the measured "
                 "library; '# diapason: version=1 library=NAME' in its first line selects another)",
                 std::string(LibraryTitle(options.library))));
    }
    if (!policy.ok()) return policy.status();
    std::error_code ignored;
    const std::string path = std::filesystem::absolute(file, ignored).lexically_normal().string();
    page->policies.push_back({file, std::move(policy).value(), path});
  }
  return {};
}

PageDoctor LookAtThisMachine() {
  const doctor::CheckInputs facts = doctor::GatherThisMachine();
  PageDoctor doctor;
  doctor.host = HostName();
  doctor.machine = doctor::DescribeMachine(facts);
  doctor.findings = doctor::CheckEverything(facts);
  SortBySeverity(&doctor.findings);
  for (const doctor::ChecklistItem& item : doctor::MakeChecklist(facts)) {
    doctor.checklist.push_back(
        {std::string(doctor::StateName(item.state)), item.text, item.because});
  }
  return doctor;
}

}  // namespace diapason::report
