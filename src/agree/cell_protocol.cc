#include "agree/cell_protocol.h"

#include <algorithm>

#include "agree/host_port.h"
#include "agree/store.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

using rendezvous::FrameKind;
using rendezvous::FrameReader;
using rendezvous::FrameWriter;

constexpr double kFullnessUnit = 1e6;

}  // namespace

Result<TcpAddress> ParseTcpAddress(std::string_view url) {
  constexpr std::string_view kScheme = "tcp://";
  const auto bad = [](const char* why) {
    return Invalid(Format("a store of diapason's own is written tcp://host[:port]: {}", why));
  };
  if (!url.starts_with(kScheme)) return bad("it begins with tcp://");
  TcpAddress address;
  const std::string_view rest = url.substr(kScheme.size());
  if (rest.find('@') != std::string_view::npos) {
    return bad("a secret is given by DIAPASON_SECRET_FILE, not in the address");
  }
  if (rest.find_first_of("/?") != std::string_view::npos) return bad("nothing follows the port");
  if (const char* wrong = ParseHostPort(rest, &address.host, &address.port)) return bad(wrong);
  return address;
}

std::string TcpUrl(const TcpAddress& address) {
  return "tcp://" + HostPortText(address.host, address.port);
}

std::string EncodeOpenJob(const OpenJobRequest& request) {
  return FrameWriter(FrameKind::kOpenJob)
      .Number(request.client)
      .Number(request.guest ? 1 : 0)
      .Text(request.nonce)
      .Take();
}

bool ReadOpenJob(std::string_view body, OpenJobRequest* request) {
  FrameReader reader(body);
  request->client = reader.Number();
  request->guest = reader.Number() != 0;
  request->nonce = reader.Text();
  return reader.ok();
}

std::string EncodeReadCells(const std::vector<std::string>& keys, size_t from) {
  const size_t count = std::min(keys.size() - from, kMostKeysAtOnce);
  FrameWriter frame(FrameKind::kRead);
  frame.Number(count);
  for (size_t i = from; i < from + count; ++i) frame.Text(keys[i]);
  return frame.Take();
}

bool ReadReadCells(std::string_view body, std::vector<std::string>* keys) {
  FrameReader reader(body);
  const uint64_t count = reader.Number();
  if (!reader.ok() || count == 0 || count > kMostKeysAtOnce) return false;
  for (uint64_t i = 0; i < count && reader.ok(); ++i) keys->emplace_back(reader.Text());
  return reader.ok();
}

std::string EncodeCellReply(const CellReply& reply) {
  FrameWriter frame(FrameKind::kCells);
  frame.Number(static_cast<uint64_t>(reply.outcome))
      .Number(reply.writes)
      .Number(static_cast<uint64_t>(reply.fullness * kFullnessUnit))
      .Text(reply.nonce)
      .Number(reply.cells.size());
  for (const std::optional<std::string>& cell : reply.cells) {
    frame.Number(cell ? 1 : 0);
    if (cell) frame.Text(*cell);
  }
  return frame.Take();
}

bool ReadCellReply(std::string_view body, CellReply* reply) {
  FrameReader reader(body);
  const uint64_t outcome = reader.Number();
  if (outcome > static_cast<uint64_t>(CellOutcome::kRefused)) return false;
  reply->outcome = static_cast<CellOutcome>(outcome);
  reply->writes = reader.Number();
  reply->fullness = std::min(static_cast<double>(reader.Number()) / kFullnessUnit, 1.0);
  reply->nonce = reader.Text();
  const uint64_t count = reader.Number();
  if (!reader.ok() || count > kMostKeysAtOnce) return false;
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    std::optional<std::string> cell;
    if (reader.Number() != 0) cell = reader.Text();
    if (cell && cell->size() > kLongestValue) return false;
    reply->cells.push_back(std::move(cell));
  }
  return reader.ok();
}

}  // namespace diapason::agree
