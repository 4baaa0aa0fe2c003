#include "mpi_recorder/recorder.h"

#include <errno.h>
#include <unistd.h>

#include <string>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "base/host_name.h"
#include "base/settings.h"
#include "base/text.h"

namespace diapason::mpi_recorder {
namespace {

// Enough for a million calls. A user who sets DIAPASON_JOURNAL_LIMIT gets what it says.
constexpr uint64_t kUsualLimit = uint64_t{1} << 26;

const uint64_t loaded_ns = WallTimeNs();
pthread_once_t once = PTHREAD_ONCE_INIT;

// The one line that the recorder may write.
void Complain(const std::string& why) {
  WriteAll(STDERR_FILENO, "diapason: MPI calls are not recorded: " + why + "\n");
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::string ProcessText(const MpiLibrary& library) {
  std::string text = "host=" + OneLine(HostName()) + "\nlibrary=" + OneLine(library.version) +
                     "\nprogram=" + OneLine(program_invocation_name) + "\n";
  int initialized = 0;
  int finalized = 1;
  library.functions.initialized(&initialized);
  library.functions.finalized(&finalized);
  if (initialized == 0 || finalized != 0) return text;  // there is no world
  int rank = -1;
  int size = 0;
  library.functions.comm_rank(library.abi.comm_world, &rank);
  library.functions.comm_size(library.abi.comm_world, &size);
  return text + Format("rank={}\nsize={}\n", rank, size);
}

}  // namespace

std::atomic<Recorder*> Recorder::active_{nullptr};
std::atomic<bool> Recorder::off_{false};

Recorder::Recorder(MpiLibrary library, std::unique_ptr<RecordWriter> writer)
    : library_(std::move(library)),
      writer_(std::move(writer)),
      comms_(&library_, [this](const mpi_record::CommBlock& comm,
                               const std::string& name) { writer_->AddCommunicator(comm, name); }),
      clock_(TickClock::Get()) {}

Recorder* Recorder::Start() {
  pthread_once(&once, StartOnce);
  return active_.load(std::memory_order_acquire);
}

// No exception may leave: the caller is a program of C or Fortran.
void Recorder::StartOnce() try {
  off_.store(true, std::memory_order_relaxed);
  const Settings settings = Settings::Read(ProcessEnvironment());
  RecordWriter::Options options;
  options.path = settings.Text(Setting::kMpiRecord);
  if (options.path.empty()) return;
  std::string why;
  std::optional<MpiLibrary> library = FindMpiLibrary(&why);
  if (!library) return Complain(why);
  options.records = static_cast<size_t>(settings.Number(Setting::kJournalRecords));
  options.limit = settings.IsSet(Setting::kJournalLimit)
                      ? static_cast<uint64_t>(settings.Number(Setting::kJournalLimit))
                      : kUsualLimit;
  options.shared = settings.Flag(Setting::kJournalShared);
  options.process = ProcessText(*library);
  options.loaded_ns = loaded_ns;
  Result<std::unique_ptr<RecordWriter>> writer = RecordWriter::Open(options);
  if (!writer.ok()) return Complain(writer.status().message());
  if (pthread_atfork(nullptr, nullptr, ForkedChild) != 0) return Complain("out of memory");
  // Never deleted: other threads may be inside a call when the process ends.
  active_.store(new Recorder(std::move(*library), std::move(writer).value()),
                std::memory_order_release);
} catch (...) {
  Complain("out of memory");
}

void Recorder::ForkedChild() { active_.store(nullptr, std::memory_order_release); }

void Recorder::Stop() {
  Recorder* recorder = active_.load(std::memory_order_acquire);
  if (recorder == nullptr) return;
  recorder->writer_->Stop();
  const std::string failure = recorder->writer_->failure();
  if (!failure.empty()) Complain(failure);
}

}  // namespace diapason::mpi_recorder
