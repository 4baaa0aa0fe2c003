#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rendezvous/frame.h"

namespace diapason::agree {

// What a rank and the server of a store at tcp:// say to each other, after the handshake of
// rendezvous/handshake.h. The hello's token is the job. Each request has one reply:
//
//   kOpenJob    client, guest?, nonce   first on every connection: the job that its other requests
//                                       are about. With a nonce, only the job that has it.
//   kPropose    key, value              the value that stands
//   kRead       keys                    their values; the server may answer only the first ones
//   kForget     prefix
//   kDone       prefix, members
//   kKeepAlive
//   kLeave                              the client needs the job no more
//   kCells      the reply: an outcome, the writes of the job, how full the store is, texts
//
// A reply is sent when everything that it tells is on the server's disk, if the server has a file.
//
// Pure functions: no input or output.

// Bound into the proofs of the handshake: they are valid for no other kind of server.
inline constexpr char kCellServerName[] = "diapason cells";
inline constexpr int kCellPort = 29477;
inline constexpr size_t kMostKeysAtOnce = 512;
// The largest request is a proposal.
inline constexpr uint32_t kMostCellRequest = (4U << 20U) + (128U << 10U);

struct TcpAddress {
  std::string host;
  int port = kCellPort;
};
// "tcp://host[:port]"
Result<TcpAddress> ParseTcpAddress(std::string_view url);
std::string TcpUrl(const TcpAddress& address);

enum class CellOutcome : uint8_t {
  kFine,
  kGone,        // the job's nonce is gone, or is another one
  kUnknownJob,  // a guest asks for a job that no rank has opened
  kNoRoom,      // the store is full; nothing has changed
  kLater,       // the server cannot write its file; nothing has changed
  kRefused,     // the request makes no sense
};

struct OpenJobRequest {
  uint64_t client = 0;  // the same after a reconnection
  bool guest = false;   // opens only what exists, and is not waited for
  std::string nonce;    // of the job, if the client knows it
};
std::string EncodeOpenJob(const OpenJobRequest& request);
bool ReadOpenJob(std::string_view body, OpenJobRequest* request);

std::string EncodeReadCells(const std::vector<std::string>& keys, size_t from);
// False: the body is damaged, or has too many keys.
bool ReadReadCells(std::string_view body, std::vector<std::string>* keys);

struct CellReply {
  CellOutcome outcome = CellOutcome::kFine;
  // Writes that the job has seen. It never decreases, unless the server has lost some.
  uint64_t writes = 0;
  double fullness = 0;
  std::string nonce;                              // to kOpenJob
  std::vector<std::optional<std::string>> cells;  // to kPropose and kRead
};
std::string EncodeCellReply(const CellReply& reply);
bool ReadCellReply(std::string_view body, CellReply* reply);

}  // namespace diapason::agree
