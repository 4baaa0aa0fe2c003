#include "base/sha256.h"

#include <array>
#include <bit>
#include <cstdint>

namespace diapason {
namespace {

constexpr size_t kBlock = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// The same of the square roots of the first 8 primes.
using Sha256State = std::array<uint32_t, 8>;
constexpr Sha256State kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

uint32_t BigEndian(std::string_view bytes) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word = (word << 8U) | static_cast<unsigned char>(bytes[i]);
  return word;
}

void Mix(std::string_view block, Sha256State* state) {
  std::array<uint32_t, 64> w{};
  for (size_t t = 0; t < 16; ++t) w[t] = BigEndian(block.substr(4 * t));
  for (size_t t = 16; t < w.size(); ++t) {
    const uint32_t a = w[t - 15];
    const uint32_t b = w[t - 2];
    w[t] = w[t - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3U)) + w[t - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10U));
  }
  Sha256State s = *state;
  for (size_t t = 0; t < w.size(); ++t) {
    const uint32_t sum_e = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const uint32_t chosen = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const uint32_t first = s[7] + sum_e + chosen + kRounds[t] + w[t];
    const uint32_t sum_a = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    const uint32_t second = sum_a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {first + second, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
  }
  for (size_t i = 0; i < s.size(); ++i) (*state)[i] += s[i];
}

void AppendBigEndian(std::string* bytes, uint64_t number, unsigned count) {
  while (count-- > 0) bytes->push_back(static_cast<char>((number >> (8U * count)) & 0xffU));
}

}  // namespace

std::string Sha256(std::string_view message) {
  const uint64_t bits = uint64_t{message.size()} * 8;
  Sha256State state = kStart;
  for (; message.size() >= kBlock; message.remove_prefix(kBlock)) Mix(message, &state);
  // The last bytes, a one bit, zeros, and the length in bits: one block or two.
  std::string rest(message);
  rest.push_back('\x80');
  while (rest.size() % kBlock != kBlock - 8) rest.push_back('\0');
  AppendBigEndian(&rest, bits, 8);
  for (size_t at = 0; at < rest.size(); at += kBlock) {
    Mix(std::string_view(rest).substr(at), &state);
  }
  std::string digest;
  for (const uint32_t word : state) AppendBigEndian(&digest, word, 4);
  return digest;
}

std::string HmacSha256(std::string_view key, std::string_view message) {
  std::string inner = key.size() > kBlock ? Sha256(key) : std::string(key);
  inner.resize(kBlock, '\0');
  std::string outer = inner;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  return Sha256(outer + Sha256(inner.append(message)));
}

bool SameInConstantTime(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  volatile unsigned char different = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    different =
        static_cast<unsigned char>(different | static_cast<unsigned char>(one[i] ^ other[i]));
  }
  return different == 0;
}

}  // namespace diapason
