#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "journal/reader.h"
#include "mpi_record/format.h"

namespace diapason::mpi_record {

struct RecordedComm {
  CommBlock facts;
  std::string name;
};

// The recording of one process, read back. Everything is validated: what cannot be is counted and
// left out, never guessed.
struct Recording {
  FileHead head;
  std::string host;
  std::string library;  // "Open MPI v4.1.4, ..."
  std::string program;
  int rank = -1;  // in MPI_COMM_WORLD; -1: it has none
  int size = 0;   // of MPI_COMM_WORLD
  std::vector<RecordedComm> comms;
  std::vector<CallRecord> calls;  // of these communicators, with calls of the table
  std::map<uint64_t, std::string> sites;
  size_t bad_blocks = 0;  // and records
  bool cut = false;       // the last block is not complete: the process was killed

  // Open MPI, whose algorithms can be chosen. Else calls were recorded only.
  bool open_mpi() const { return library.starts_with("Open MPI"); }
  bool complete() const {
    return head.ended != 0 && head.dropped == 0 && head.over_limit == 0 && bad_blocks == 0;
  }
  // Seconds from MPI_Init (or the start of the recorder) to MPI_Finalize (or the last time that the
  // file was written), and inside collectives.
  double ProgramSeconds() const;
  double CollectiveSeconds() const;
};

// Whether these are the first bytes of a recording.
bool IsRecording(std::string_view text);
bool IsRecordingFile(const std::string& path);

Result<Recording> ReadRecording(const std::string& path);
// The same from text; for tests and fuzzing.
Result<Recording> ParseRecording(std::string_view text, const std::string& name);

// As the journal of a rank: every call is a run that the host's clock has timed. Collectives have
// the numbers of domain/mpi_calls.h.
journal::JournalContents ToJournal(const Recording& recording);

}  // namespace diapason::mpi_record
