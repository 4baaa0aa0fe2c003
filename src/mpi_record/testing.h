#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "mpi_record/format.h"

// Recordings for tests, as the recorder writes them.
namespace diapason::mpi_record {

template <typename T>
std::string Bytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline std::string Block(BlockKind kind, const std::string& payload) {
  return Bytes(BlockHead{static_cast<uint32_t>(kind), static_cast<uint32_t>(payload.size())}) +
         payload;
}

inline FileHead Head() {
  FileHead head;
  std::memcpy(head.magic, kMagic, sizeof(head.magic));
  head.version = kVersion;
  head.byte_order = kByteOrder;
  head.head_bytes = sizeof(FileHead);
  head.call_bytes = sizeof(CallRecord);
  head.pid = 700;
  head.calls_known = kMpiCallCount;
  head.loaded_ns = 1'000'000'000;
  head.init_ns = 2'000'000'000;
  head.finalize_ns = 6'000'000'000;
  head.written_ns = 7'000'000'000;
  head.ended = 1;
  return head;
}

inline std::string Process(int rank, int ranks, std::string_view library = "Open MPI v4.1.4") {
  return Block(BlockKind::kProcess, "host=node0\nlibrary=" + std::string(library) +
                                        "\nprogram=./solver\nrank=" + std::to_string(rank) +
                                        "\nsize=" + std::to_string(ranks) + "\n");
}

inline CommBlock World(int rank, int ranks) {
  CommBlock comm;
  comm.number = 1;
  comm.ranks = static_cast<uint32_t>(ranks);
  comm.rank = rank;
  comm.nodes = 1;
  comm.id = 0x5eed;
  comm.created_ns = 2'000'000'001;
  return comm;
}

inline std::string CommText(const CommBlock& comm, const std::string& name = "MPI_COMM_WORLD") {
  return Block(BlockKind::kCommunicator, Bytes(comm) + name);
}

inline CallRecord Recorded(MpiCall call, uint64_t bytes, uint64_t start_ns, uint64_t duration_ns,
                           uint32_t sequence, uint32_t communicator = 1) {
  CallRecord record;
  record.call = static_cast<uint8_t>(call);
  record.bytes = bytes;
  record.type_bytes = bytes > 0 ? 8 : 0;
  record.start_ns = start_ns;
  record.duration_ns = duration_ns;
  record.sequence = sequence;
  record.communicator = communicator;
  record.site = 0x1234;
  return record;
}

}  // namespace diapason::mpi_record
