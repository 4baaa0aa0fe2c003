// Journals: garbage is counted, never believed; and what was read can be compared, exported and
// profiled.
#include "fuzz.h"
#include "job_profile/job_profile.h"
#include "journal/compare.h"
#include "journal/learning.h"
#include "journal/reader.h"
#include "journal/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;  // NOLINT
  const Result<journal::JournalContents> read =
      journal::ParseJournal(fuzz::Text(data, size), "fuzz");
  if (!read.ok()) return 0;
  const journal::JournalContents& contents = read.value();
  for (const journal::JournalRecord& record : contents.records) {
    const journal::JournalComm* communicator = contents.Find(record.communicator);
    fuzz::Promise(communicator != nullptr, "every record has its communicator");
    fuzz::Promise(!journal::RecordLine(record, communicator->library).empty(),
                  "what was read can be written");
  }

  // The same journal as two processes of one job.
  journal::JournalContents other = contents;
  for (journal::JournalComm& communicator : other.communicators) {
    if (communicator.rank >= 0) communicator.rank ^= 1;
  }
  journal::JournalComparison comparison;
  comparison.Add("a", contents);
  comparison.Add("b", other);
  const journal::JournalComparison::Report report = comparison.Finish();
  fuzz::Promise(!report.Verdict().empty(), "there is a verdict");
  for (const journal::JournalComparison::Difference& difference : report.first) {
    fuzz::Promise(difference.sides.size() > 1 && !difference.Text().empty(),
                  "a difference has two sides");
  }

  size_t written = 0;
  journal::TraceWriter trace([&](std::string_view text) {
    written += text.size();
    return Status();
  });
  fuzz::Promise(trace.Add("a", contents).ok() && trace.Finish().ok() && written > 0,
                "what was read can be exported");
  job_profile::ProfileMaker maker;
  maker.Add("a", contents);
  maker.Add("b", other);
  const Result<job_profile::JobProfile> profile = maker.Finish();
  if (profile.ok()) {
    const job_profile::JobProfile& made = profile.value();
    fuzz::Promise(!made.Headline().empty() && made.calls > 0, "a profile has calls");
    fuzz::Promise(made.times.exposed_low <= made.times.exposed * 1.001 &&
                      made.times.exposed <= made.times.exposed_high * 1.001 &&
                      made.times.exposed_high <= made.times.total * 1.001,
                  "bounds are in order");
  }
  for (const journal::JournalContext& context : journal::LearningOf(contents)) {
    fuzz::Promise(!context.epochs.empty(), "a context that was counted has an epoch");
  }
  return 0;
}
