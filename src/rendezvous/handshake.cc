#include "rendezvous/handshake.h"

#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/sha256.h"

namespace diapason::rendezvous {
namespace {

constexpr size_t kNonceBytes = 32;

FrameWriter& Describe(FrameWriter* writer, const Hello& hello) {
  return writer->Text(hello.version)
      .Text(hello.token)
      .Number(hello.rank)
      .Number(hello.size)
      .Text(hello.host)
      .Number(hello.process)
      .Text(hello.nonce);
}

// Every part is preceded by its length: no two conversations give the same bytes.
std::string Proof(std::string_view speaker, FrameKind kind, std::string_view text,
                  const Hello& hello, const HandshakeInputs& shared) {
  if (shared.secret.empty()) return "";
  FrameWriter said(kind);
  said.Text(kFrameMagic).Text(speaker).Text(shared.address).Text(shared.nonce);
  Describe(&said, hello).Text(text);
  return HmacSha256(shared.secret, said.Take());
}

}  // namespace

Result<std::string> DrawNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (::getentropy(nonce.data(), nonce.size()) != 0) {
    return IoError("no random numbers: " + ErrnoText(errno));
  }
  return nonce;
}

std::string StoreName(const std::string& host, int port) {
  return host + ":" + std::to_string(port);
}

std::string EncodeChallenge(const HandshakeInputs& shared) {
  return FrameWriter(FrameKind::kChallenge)
      .Number(shared.secret.empty() ? 0 : 1)
      .Text(shared.nonce)
      .Take();
}

Status ReadChallenge(std::string_view body, std::string* nonce, bool* wants_proof) {
  FrameReader reader(body);
  *wants_proof = reader.Number() != 0;
  *nonce = reader.Text();
  if (!reader.ok() || nonce->size() != kNonceBytes) {
    return Unavailable("another program listens there");
  }
  return {};
}

std::string EncodeHello(const Hello& hello, const HandshakeInputs& shared) {
  FrameWriter frame(FrameKind::kHello);
  Describe(&frame, hello).Text(Proof("rank", FrameKind::kHello, "", hello, shared));
  return frame.Take();
}

bool ReadHello(std::string_view body, Hello* hello) {
  FrameReader reader(body);
  hello->version = reader.Text();
  hello->token = reader.Text();
  hello->rank = reader.Number();
  hello->size = reader.Number();
  hello->host = reader.Text();
  hello->process = reader.Number();
  hello->nonce = reader.Text();
  hello->proof = reader.Text();
  return reader.ok() && hello->nonce.size() == kNonceBytes;
}

bool ProvesItself(const Hello& hello, const HandshakeInputs& shared) {
  return SameInConstantTime(hello.proof, Proof("rank", FrameKind::kHello, "", hello, shared));
}

std::string EncodeVerdict(FrameKind kind, std::string_view text, const Hello& hello,
                          const HandshakeInputs& shared) {
  return FrameWriter(kind).Text(text).Text(Proof("store", kind, text, hello, shared)).Take();
}

bool ReadVerdict(FrameKind kind, std::string_view body, const Hello& hello,
                 const HandshakeInputs& shared, std::string* text) {
  FrameReader reader(body);
  *text = reader.Text();
  const std::string_view proof = reader.Text();
  return reader.ok() && SameInConstantTime(proof, Proof("store", kind, *text, hello, shared));
}

std::string EncodeUnproven() { return FrameWriter(FrameKind::kRefused).Text("").Text("").Take(); }

bool IsUnproven(FrameKind kind, std::string_view body) {
  FrameReader reader(body);
  return kind == FrameKind::kRefused && reader.Text().empty() && reader.Text().empty() &&
         reader.ok();
}

}  // namespace diapason::rendezvous
