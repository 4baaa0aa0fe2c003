#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace diapason {

// Random numbers without state: a number depends only on (seed, stream, index), not on the thread
// or the order of calls. This makes runs repeatable.

// The finaliser of SplitMix64: every input bit flips about half of the output bits.
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class CounterRandom {
 public:
  constexpr CounterRandom(uint64_t seed, uint64_t stream) : key_(MixBits(MixBits(seed) ^ stream)) {}

  constexpr uint64_t Bits(uint64_t index) const { return MixBits(key_ ^ MixBits(index)); }
  // In [0, 1).
  constexpr double Uniform(uint64_t index) const {
    return static_cast<double>(Bits(index) >> 11) * 0x1p-53;
  }
  // Mean 0, standard deviation 1 (Box and Muller).
  double Normal(uint64_t index) const {
    const double radius = std::sqrt(-2 * std::log1p(-Uniform(index)));
    const double angle =
        2 * std::numbers::pi * static_cast<double>(MixBits(Bits(index)) >> 11) * 0x1p-53;
    return radius * std::cos(angle);
  }

 private:
  uint64_t key_;
};

}  // namespace diapason
