// Journals: garbage is counted, never believed.
#include "fuzz.h"
#include "journal/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;  // NOLINT
  const Result<journal::Contents> contents = journal::ParseJournal(fuzz::Text(data, size), "fuzz");
  if (!contents.ok()) return 0;
  for (const journal::Record& record : contents.value().records) {
    const journal::Communicator* communicator = contents.value().Find(record.communicator);
    fuzz::Promise(communicator != nullptr, "every decision has its communicator");
    fuzz::Promise(!journal::RecordLine(record, communicator->library).empty(),
                  "what was read can be written");
  }
  return 0;
}
