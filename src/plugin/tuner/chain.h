#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "domain/decision.h"
#include "plugin/abi/abi.h"
#include "plugin/abi/selection.h"
#include "plugin/tuner/find_tuner.h"

namespace diapason::plugin {

// What the library passed at init of a communicator; given to a chained tuner unchanged. The two
// pointers are valid during init only.
struct CommInit {
  int api = 0;
  uint64_t comm_id = 0;  // 0 before v5
  Shape shape;
  abi::Logger logger = nullptr;
  abi::NvlDomainInfo* domain = nullptr;
  abi::Constants* constants = nullptr;
};

// Another tuner library, asked before diapason: its answer is what "default" means. It is called
// through the newest API that it has and that is no newer than the library's; v2 is adapted to the
// table-based versions as the library itself would do, and one older than the library's v7 gets the
// constants in its own layout. Its code stays loaded until the process ends.
//
// If a chained tuner returns an error for a question, that question's outputs are restored.
class Chain {
 public:
  // Larger tables are left as they are.
  static constexpr int kMostCells = 256;

  // Fails if the found library has no usable API (kInvalid), or its init fails (kUnavailable).
  static Result<std::unique_ptr<Chain>> Open(const FoundTuner& found, const CommInit& init);
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  void AskTable(const Question& question, int collective, CostTable* table, int* channels) noexcept;
  void AskPair(const Question& question, int collective, int collnet, int nvls, int* algorithm,
               int* protocol, int* channels) noexcept;
  int ChunkSize(int collective, size_t bytes, int algorithm, int protocol, int channels,
                size_t* chunk_size) noexcept;

  // "aws-ofi (v3) of libnccl-net.so"
  std::string description() const;
  // The file that holds its code.
  std::string File() const;
  // What ranks compare: the file's name and digest, the tuner's name and its API, without blanks.
  // Paths may differ between hosts, contents may not.
  std::string Identity() const;

 private:
  Chain() = default;
  Status Init(const CommInit& init);
  int InitWithConstants(const CommInit& init);
  // "aws-ofi (v3)"
  std::string NameAndApi() const;

  int api_ = 0;
  void* symbol_ = nullptr;
  void* context_ = nullptr;
  bool initialised_ = false;
};

}  // namespace diapason::plugin
