#include <chrono>
#include <cstdio>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/data/data.h"
#include "cli/framework/command.h"
#include "dataset/import_journal.h"
#include "dataset/words.h"
#include "domain/vocabulary.h"

namespace diapason::cli {
namespace {

constexpr size_t kLargestFile = size_t{256} << 20;
constexpr size_t kLargestJournal = size_t{4} << 30;

struct Totals {
  size_t files = 0;
  size_t rows = 0;
  size_t runs = 0;
  size_t samples = 0;
  bool logs = false;
  // The new samples, for the checks.
  dataset::StoreContents contents;
};

// Normalises the names of libraries; an invalid option is reported before any file is opened.
Status Prepare(const DataImport& asked, dataset::ImportOptions* options) {
  *options = asked.options;
  if (!options->library.empty()) {
    ASSIGN_OR_RETURN(const Library library, ParseLibrary(options->library));
    options->library = LibraryName(library);
  }
  if (!asked.bytes.empty()) {
    ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(asked.bytes));
    options->bytes = bytes;
  }
  if (!asked.kind.empty()) {
    options->kind = asked.kind == "iteration" ? dataset::Point::Kind::kIteration
                                              : dataset::Point::Kind::kCollective;
  }
  std::string collective = "allreduce";
  if (!options->collective.empty()) {
    ASSIGN_OR_RETURN(const std::string name, dataset::ParseCollectiveWord(options->collective));
    collective = options->collective = name;
  }
  return dataset::PointFromOptions(*options, collective).status();
}

// Adds the samples from `file` to the store, and reports the result.
Status Keep(dataset::Import import, const std::string& file, const std::string& path,
            std::unique_ptr<dataset::SampleStore>* store, Totals* totals) {
  // Created only now, so that unreadable files leave no empty store behind.
  if (*store == nullptr) {
    ASSIGN_OR_RETURN(*store,
                     dataset::SampleStore::Open(path, dataset::SampleStore::Access::kWrite));
  }
  ASSIGN_OR_RETURN(const std::vector<bool> added, (*store)->AddRuns(import.runs));
  size_t new_runs = 0;
  size_t new_samples = 0;
  for (size_t i = 0; i < import.runs.size(); ++i) {
    if (!added[i]) continue;
    ++new_runs;
    new_samples += import.runs[i].samples.size();
    const size_t run = totals->contents.runs.size();
    totals->contents.runs.push_back(std::move(import.runs[i].run));
    for (dataset::Sample& sample : import.runs[i].samples) {
      totals->contents.records.push_back({run, std::move(sample)});
    }
  }
  const std::string shown = dataset::Printable(file);
  if (new_runs == 0) {
    PrintOut("{}: {}; already in the store, nothing was added\n", shown, import.format);
  } else {
    PrintOut("{}: {}, {}, {}\n", shown, import.format, Count(new_runs, "run"),
             Count(new_samples, "sample"));
    if (new_runs < import.runs.size()) {
      PrintOut("  {} in the store already\n", Count(import.runs.size() - new_runs, "run"));
    }
  }
  for (const std::string& message : import.messages) {
    PrintOut("  {}\n", dataset::Printable(message, 500));
  }
  ++totals->files;
  totals->logs |= import.format.ends_with(" log");
  totals->rows += import.rows;
  totals->runs += new_runs;
  totals->samples += new_samples;
  return {};
}

Result<dataset::Import> ReadOne(const std::string& file, bool iterations,
                                const dataset::ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestFile));
  return iterations ? dataset::ImportIterations(text, file, options)
                    : dataset::ImportText(text, file, options);
}

Result<dataset::Import> ReadJournals(const std::vector<std::string>& files,
                                     const dataset::ImportOptions& options) {
  if (!options.algorithm.empty() || !options.protocol.empty() || options.channels != 0) {
    return Invalid("journals record what ran: remove --algorithm, --protocol and --channels");
  }
  dataset::JournalImport journals(options);
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestJournal));
    RETURN_IF_ERROR(journals.Add(text, file));
  }
  return journals.Finish();
}

void PrintFindings(const dataset::StoreContents& contents, const std::string& store) {
  const std::vector<Finding> findings = dataset::Check(contents);
  if (findings.empty()) return;
  PrintOut("\n");
  for (const Finding& finding : findings) {
    PrintOut("{}: {}\n", std::string(SeverityName(finding.severity)), finding.title);
  }
  PrintOut("`diapason data check {}` shows the evidence and what to do\n", store);
}

}  // namespace

Result<int> RunDataImport(const DataImport& asked) {
  dataset::ImportOptions options;
  RETURN_IF_ERROR(Prepare(asked, &options));
  std::unique_ptr<dataset::SampleStore> store;
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  int status = kExitFine;
  const auto keep = [&](Result<dataset::Import> read, const std::string& file) {
    const Status done = read.ok()
                            ? Keep(std::move(read).value(), file, asked.store, &store, &totals)
                            : read.status();
    if (done.ok()) return;
    // Flushed so that messages about the previous files come first.
    std::fflush(stdout);
    status = Fail(done);
  };
  for (const std::string& file : asked.files) keep(ReadOne(file, false, options), file);
  for (const std::string& file : asked.iterations) keep(ReadOne(file, true, options), file);
  if (!asked.journals.empty()) {
    keep(ReadJournals(asked.journals, options), asked.journals.front());
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (totals.files > 0) {
    PrintOut("{} of {} added to {}: {} read in {:.2f} s\n", Count(totals.samples, "sample"),
             Count(totals.runs, "run"), asked.store, Count(totals.rows, "row"), taken.count());
  }
  if (totals.logs && totals.runs > 0 && options.algorithm.empty() && options.protocol.empty() &&
      options.channels == 0 && options.environment.empty()) {
    PrintOut(
        "logs do not record what was forced: the samples count as the library's own choice; use "
        "--algorithm, --protocol, --channels and --env to change that\n");
  }
  PrintFindings(totals.contents, asked.store);
  return status;
}

}  // namespace diapason::cli
