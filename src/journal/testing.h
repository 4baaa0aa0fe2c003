#pragma once

#include <string>

#include "journal/record.h"

// Helpers shared by the tests of this component.
namespace diapason::journal {

inline constexpr char kFirstLine[] =
    "{\"type\":\"journal\",\"version\":1,\"host\":\"h\",\"pid\":7}\n";

inline JournalComm RcclCommunicator(uint32_t number) {
  JournalComm communicator;
  communicator.number = number;
  communicator.library = Library::kRccl;
  return communicator;
}

// A journal with communicator 1 (NCCL) and 2 (RCCL), and these lines.
inline std::string JournalWith(const std::string& lines) {
  JournalComm nccl;
  nccl.number = 1;
  return kFirstLine + CommunicatorLine(nccl) + "\n" + CommunicatorLine(RcclCommunicator(2)) + "\n" +
         lines;
}

inline JournalRecord SomeRecord() {
  JournalRecord record;
  record.communicator = 1;
  record.collective = static_cast<uint8_t>(Collective::kAllReduce);
  return record;
}

inline bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace diapason::journal
