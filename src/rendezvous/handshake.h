#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "rendezvous/frame.h"

namespace diapason::rendezvous {

// How a rank and rank 0's store convince each other, before either believes anything else:
//
//   store: magic, kChallenge (wants a proof?, nonce)
//   rank:  magic, kHello (who it is, nonce, proof)
//   store: kFine, kLater or kRefused (text, proof)
//
// A proof is HMAC-SHA-256 with the job's secret over everything both have said, which of the two
// speaks, and the store's address as each of them was told it. So it is worth nothing in another
// connection, at another store, for another rank, or in the other direction. Without a secret both
// proofs are empty, and nothing is proven: see docs/job/comm.md.
//
// Values only; no input or output here.

struct Hello {
  std::string version;
  std::string token;  // what the launcher says about the job
  uint64_t rank = 0;
  uint64_t size = 0;
  std::string host;
  uint64_t process = 0;
  std::string nonce;
  std::string proof;
};

// What both ends must know alike for a proof to hold.
struct HandshakeInputs {
  std::string secret;   // "": nothing is proven
  std::string address;  // StoreName()
  std::string nonce;    // the store's
};

// 32 bytes that were never used before. Fails where the kernel has none to give.
Result<std::string> DrawNonce();
// The store's address: MASTER_ADDR letter for letter, and the port it really listens on.
std::string StoreName(const std::string& host, int port);

std::string EncodeChallenge(const HandshakeInputs& shared);
// Fails where it is no challenge. `*wants_proof`: the store has a secret.
Status ReadChallenge(std::string_view body, std::string* nonce, bool* wants_proof);

// The frame, with its proof.
std::string EncodeHello(const Hello& hello, const HandshakeInputs& shared);
// False: something is missing.
bool ReadHello(std::string_view body, Hello* hello);
// Whether it comes from a process that knows the secret; true where there is none.
bool ProvesItself(const Hello& hello, const HandshakeInputs& shared);

// The store's answer to a hello, and the reader of its body: false where it does not come from a
// process that knows the secret.
std::string EncodeVerdict(FrameKind kind, std::string_view text, const Hello& hello,
                          const HandshakeInputs& shared);
bool ReadVerdict(FrameKind kind, std::string_view body, const Hello& hello,
                 const HandshakeInputs& shared, std::string* text);

}  // namespace diapason::rendezvous
