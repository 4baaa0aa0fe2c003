// Recordings of MPI programs: what cannot be is counted and left out, and what was read can be
// profiled.
#include <cmath>

#include "fuzz.h"
#include "mpi_profile/mpi_profile.h"
#include "mpi_record/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;  // NOLINT
  const std::string_view text = fuzz::Text(data, size);
  const Result<mpi_record::Recording> read = mpi_record::ParseRecording(text, "fuzz");
  if (!read.ok()) return 0;
  fuzz::Promise(mpi_record::IsRecording(text), "what was read looks like a recording");
  const mpi_record::Recording& recording = read.value();
  fuzz::Promise(recording.ProgramSeconds() >= 0 && recording.CollectiveSeconds() >= 0,
                "times are not negative");
  const journal::JournalContents contents = mpi_record::ToJournal(recording);
  for (const journal::JournalRecord& record : contents.records) {
    fuzz::Promise(contents.Find(record.communicator) != nullptr,
                  "every record has its communicator");
  }
  // The same recording as two ranks of one program.
  mpi_record::Recording other = recording;
  if (other.rank >= 0) other.rank ^= 1;
  mpi_profile::ProfileMaker maker;
  maker.Add("a", recording);
  maker.Add("b", other);
  const Result<mpi_profile::MpiProfile> made = maker.Finish();
  if (!made.ok()) return 0;
  const mpi_profile::MpiProfile& profile = made.value();
  fuzz::Promise(!profile.Headline().empty() && !profile.classes.empty(), "a profile has calls");
  for (const double share : {profile.IterationShare(), profile.ChangeableShare()}) {
    fuzz::Promise(share >= 0 && share <= 1.001, "shares are shares");
  }
  fuzz::Promise(std::isfinite(profile.CollectiveShare()), "the share of collectives is a number");
  return 0;
}
