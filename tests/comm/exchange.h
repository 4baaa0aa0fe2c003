// One operation with inputs that are a function of rank and index, and a check of all it wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diapason/comm.h"
#include "numbers.h"
#include "session.h"

namespace diapason::conformance {

// Elements between guards, in host or device memory. Written here, then Upload()ed; after the
// operation Download()ed and looked at.
class Buffer {
 public:
  Buffer(bool device, size_t bytes, size_t shift);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;

  // What is handed to the group: in host memory it is bytes() itself.
  void* data() const { return at_; }
  uint8_t* bytes() { return image_.data() + start_; }
  size_t size() const { return size_; }
  bool Upload();
  bool Download();
  bool GuardsHold() const;

 private:
  std::vector<uint8_t> image_;
  size_t start_ = 0;
  size_t size_ = 0;
  void* device_ = nullptr;
  void* at_ = nullptr;
};

struct Shape {
  Operation operation = Operation::kAllReduce;
  DataType type = DataType::kF32;
  ReduceOp reduce = ReduceOp::kSum;
  size_t count = 1;
  bool in_place = false;
  int root = 0;      // also the other side of send and recv
  size_t shift = 0;  // bytes by which the buffers miss their alignment
  std::optional<DataType> wire;
  Config config;
  // Where the other side of a send needs the same data.
  std::optional<uint64_t> seed;
};
std::string Describe(const Shape& shape);

class Exchange {
 public:
  // The inputs are those of `group`'s ranks.
  Exchange(Session& session, const Group& group, const Shape& shape);

  // REQUIRES: this outlives the operation.
  const Call& call() const { return call_; }
  // Checks the status and everything the operation wrote or must not have written.
  void Verify(const Status& status);
  // For another group member's view of the same data.
  const Shape& shape() const { return shape_; }

 private:
  struct Expected {
    Value value;
    Value tolerance;
  };
  size_t InCount() const;
  size_t OutCount() const;
  Value Given(int rank, size_t index) const;
  // What must be at `index` of the output on this rank.
  Expected At(size_t index) const;
  Expected Combined(size_t index) const;
  void FillInput(uint8_t* at, size_t count) const;
  bool InputUnchanged();
  void CheckOutput(uint8_t* at);
  bool HasInput() const;
  bool HasOutput() const;

  Session& session_;
  Shape shape_;
  int rank_;
  int size_;
  uint64_t seed_;
  Buffer in_;
  Buffer out_;  // unused in place
  Call call_;
};

// Prepares, runs and checks; nothing once the session is broken.
void RunOne(Session& session, Group& group, const Shape& shape);

// Only for what may be refused (a configuration this library does not have here): true when it ran.
// The refusal must be clear, and the same on all ranks.
bool RunOrRefuse(Session& session, Group& group, const Shape& shape);

}  // namespace diapason::conformance
