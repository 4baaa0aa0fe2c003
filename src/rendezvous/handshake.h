#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "rendezvous/frame.h"

namespace diapason::rendezvous {

// How a rank and rank 0's store authenticate each other, before either uses other data:
//
//   store: magic, kChallenge (proof required?, nonce)
//   rank:  magic, kHello (identity, nonce, proof)
//   store: kFine, kLater or kRefused (text, proof)
//
// A proof is an HMAC-SHA-256 with the job's secret over all data of both sides, the role of the
// sender, and the store's address as configured on each side. So it cannot be replayed in another
// connection, at another store, for another rank, or in the other direction. Without a secret both
// proofs are empty, and neither side is authenticated: see docs/job/comm.md.
//
// Pure functions: no input or output.

struct Hello {
  std::string version;
  std::string token;  // the launcher's identity of the job
  uint64_t rank = 0;
  uint64_t size = 0;
  std::string host;
  uint64_t process = 0;
  std::string nonce;
  std::string proof;
};

// The values that both ends must share for a proof to be valid.
struct HandshakeInputs {
  std::string secret;   // "": nothing is proven
  std::string address;  // StoreName()
  std::string nonce;    // the store's
};

// 32 fresh random bytes. Fails if the kernel provides none.
Result<std::string> DrawNonce();
// The store's address: MASTER_ADDR verbatim, and the actual port.
std::string StoreName(const std::string& host, int port);

std::string EncodeChallenge(const HandshakeInputs& shared);
// Fails if it is not a challenge. `*wants_proof`: the store has a secret.
Status ReadChallenge(std::string_view body, std::string* nonce, bool* wants_proof);

// The frame, with its proof.
std::string EncodeHello(const Hello& hello, const HandshakeInputs& shared);
// False: a field is missing.
bool ReadHello(std::string_view body, Hello* hello);
// Whether the sender knows the secret; true if there is none.
bool ProvesItself(const Hello& hello, const HandshakeInputs& shared);

// The store's reply to a hello, and the reader of its body: false if the sender does not know the
// secret.
std::string EncodeVerdict(FrameKind kind, std::string_view text, const Hello& hello,
                          const HandshakeInputs& shared);
bool ReadVerdict(FrameKind kind, std::string_view body, const Hello& hello,
                 const HandshakeInputs& shared, std::string* text);

// The reply to a hello whose proof is wrong: kRefused with neither text nor proof, from which
// nothing about the secret can be computed. Any process at that address can send it.
std::string EncodeUnproven();
bool IsUnproven(FrameKind kind, std::string_view body);

}  // namespace diapason::rendezvous
