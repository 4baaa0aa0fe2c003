#include "exchange.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "device.h"

namespace diapason::conformance {
namespace {

constexpr size_t kGuard = 64;
constexpr uint8_t kGuardByte = 0xa5;
// What nobody has written yet.
constexpr uint8_t kUnwritten = 0xcd;
// Inputs repeat after so many elements, so that large ones cost little; a prime, so that no
// displacement by a part or a segment looks right.
constexpr size_t kPeriod = 8191;

bool IsReduction(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduce ||
         operation == Operation::kReduceScatter;
}

// Through the function of that name, which may take a shorter way than Run.
Status RunByName(Group& group, const Call& call) {
  switch (call.operation) {
    case Operation::kAllReduce:
      return group.AllReduce(call.in, call.out, call.count, call.type, call.reduce);
    case Operation::kBroadcast:
      return group.Broadcast(call.in, call.out, call.count, call.type, call.peer);
    case Operation::kReduce:
      return group.Reduce(call.in, call.out, call.count, call.type, call.reduce, call.peer);
    case Operation::kAllGather:
      return group.AllGather(call.in, call.out, call.count, call.type);
    case Operation::kReduceScatter:
      return group.ReduceScatter(call.in, call.out, call.count, call.type, call.reduce);
    case Operation::kAllToAll:
      return group.AllToAll(call.in, call.out, call.count, call.type);
    case Operation::kSend:
      return group.Send(call.in, call.count, call.type, call.peer);
    case Operation::kRecv:
      return group.Recv(call.out, call.count, call.type, call.peer);
    case Operation::kBarrier:
      return group.Barrier();
  }
  return group.Run(call);
}

}  // namespace

Buffer::Buffer(bool device, size_t bytes, size_t shift) : size_(bytes) {
  image_.resize(bytes + shift + 4 * kGuard, kGuardByte);
  const size_t misaligned = reinterpret_cast<uintptr_t>(image_.data()) % kGuard;
  start_ = (device ? 0 : kGuard - misaligned) + kGuard + shift;
  std::memset(this->bytes(), kUnwritten, bytes);
  at_ = this->bytes();
  if (!device) return;
  device_ = DeviceAllocate(image_.size());
  at_ = device_ == nullptr ? nullptr : static_cast<uint8_t*>(device_) + start_;
}

Buffer::~Buffer() {
  if (device_ != nullptr) DeviceFree(device_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : image_(std::move(other.image_)),
      start_(other.start_),
      size_(other.size_),
      device_(std::exchange(other.device_, nullptr)),
      at_(std::exchange(other.at_, nullptr)) {}

bool Buffer::Upload() {
  return device_ == nullptr || DeviceUpload(device_, image_.data(), image_.size());
}

bool Buffer::Download() {
  return device_ == nullptr || DeviceDownload(image_.data(), device_, image_.size());
}

bool Buffer::GuardsHold() const {
  const auto is_guard = [](uint8_t byte) { return byte == kGuardByte; };
  return std::all_of(image_.begin(), image_.begin() + static_cast<ptrdiff_t>(start_), is_guard) &&
         std::all_of(image_.begin() + static_cast<ptrdiff_t>(start_ + size_), image_.end(),
                     is_guard);
}

std::string Describe(const Shape& shape) {
  std::string text = Format("{} {}", OperationName(shape.operation), DataTypeName(shape.type));
  if (IsReduction(shape.operation)) text += Format(" {}", ReduceOpName(shape.reduce));
  text += Format(", count {}", shape.count);
  if (shape.in_place) text += ", in place";
  if (shape.root != 0) text += Format(", root or peer {}", shape.root);
  if (shape.shift != 0) text += Format(", {} bytes off", shape.shift);
  if (shape.wire) text += Format(", as {}", DataTypeName(*shape.wire));
  const Config& config = shape.config;
  if (!config.IsDefault()) {
    text += Format(", config {}/{}/{}/{}", config.algorithm, config.protocol, config.channels,
                   config.segment_bytes);
  }
  return text;
}

size_t Exchange::InCount() const {
  const bool parts =
      shape_.operation == Operation::kReduceScatter || shape_.operation == Operation::kAllToAll;
  return shape_.count * static_cast<size_t>(parts ? size_ : 1);
}

size_t Exchange::OutCount() const {
  const bool parts =
      shape_.operation == Operation::kAllGather || shape_.operation == Operation::kAllToAll;
  return shape_.count * static_cast<size_t>(parts ? size_ : 1);
}

bool Exchange::HasInput() const {
  if (shape_.operation == Operation::kBroadcast) return rank_ == shape_.root;
  return shape_.operation != Operation::kRecv;
}

bool Exchange::HasOutput() const {
  if (shape_.operation == Operation::kReduce) return rank_ == shape_.root;
  return shape_.operation != Operation::kSend;
}

Exchange::Exchange(Session& session, const Group& group, const Shape& shape)
    : session_(session),
      shape_(shape),
      rank_(group.rank()),
      size_(group.size()),
      seed_(shape.seed ? *shape.seed : session.NextSeed()),
      in_(session.settings().device,
          std::max(InCount(), shape.in_place ? OutCount() : 0) * SizeOf(shape.type), shape.shift),
      out_(session.settings().device, shape.in_place ? 0 : OutCount() * SizeOf(shape.type),
           shape.shift) {
  const size_t part = static_cast<size_t>(rank_) * shape_.count * SizeOf(shape_.type);
  uint8_t* in = static_cast<uint8_t*>(in_.data());
  size_t in_offset = 0;
  call_ = {shape_.operation, in,         out_.data(), shape_.count, shape_.type,
           shape_.reduce,    shape_.root};
  if (shape_.in_place) {
    call_.out = in;
    if (shape_.operation == Operation::kAllGather) {
      call_.in = in + part;
      in_offset = part;
    }
    if (shape_.operation == Operation::kReduceScatter) call_.out = in + part;
  }
  call_.wire = shape_.wire;
  call_.config = shape_.config;
  if (HasInput()) FillInput(in_.bytes() + in_offset, InCount());
  // Half of the time nothing is given where nothing is read or written.
  const bool leave_out = seed_ % 2 == 0;
  if (!HasInput() && !shape_.in_place && leave_out) call_.in = nullptr;
  if (!HasOutput() && !shape_.in_place && leave_out) call_.out = nullptr;
  session_.Expect(in_.Upload() && out_.Upload(), "upload to the GPU");
}

Value Exchange::Given(int rank, size_t index) const {
  const size_t at = index % kPeriod;
  return shape_.wire ? WireInput(shape_.reduce, seed_, rank, size_, at)
                     : Input(shape_.type, shape_.reduce, seed_, rank, size_, at);
}

void Exchange::FillInput(uint8_t* at, size_t count) const {
  const size_t width = SizeOf(shape_.type);
  const size_t first = std::min(count, kPeriod);
  for (size_t i = 0; i < first; ++i) Encode(shape_.type, Given(rank_, i), at + i * width);
  for (size_t done = first; done < count; done += kPeriod) {
    std::memcpy(at + done * width, at, std::min(kPeriod, count - done) * width);
  }
}

Exchange::Expected Exchange::Combined(size_t index) const {
  std::vector<Value> values;
  Value magnitude = 0;
  for (int rank = 0; rank < size_; ++rank) {
    // What the rank's buffer held, after it was rounded to the type.
    values.push_back(RoundTo(shape_.type, Given(rank, index)));
    magnitude += std::fabs(values.back());
  }
  Expected expected{Combine(shape_.reduce, values), 0};
  const Value ranks = size_;
  if (shape_.wire) {
    // Every input is rounded once, every step once, the average and the way back once more.
    const Value growth = std::pow(1 + Roundoff(*shape_.wire),
                                  shape_.reduce == ReduceOp::kProd ? 2 * ranks + 2 : ranks + 2) -
                         1;
    const bool sums = shape_.reduce == ReduceOp::kSum || shape_.reduce == ReduceOp::kAvg;
    expected.tolerance = growth * (sums ? magnitude : std::fabs(expected.value));
    return expected;
  }
  if (shape_.reduce != ReduceOp::kAvg) return expected;
  if (!IsFloat(shape_.type)) {
    // Which way a fraction goes is the library's own; that it goes no further is not.
    expected.tolerance = expected.value == std::floor(expected.value) ? 0 : 0.999L;
  } else {
    // Libraries divide at the end, or multiply every input by 1/n.
    expected.tolerance = (std::pow(1 + Roundoff(shape_.type), ranks + 2) - 1) * magnitude / ranks;
  }
  return expected;
}

Exchange::Expected Exchange::At(size_t index) const {
  const auto rank = static_cast<size_t>(rank_);
  switch (shape_.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce:
      return Combined(index);
    case Operation::kReduceScatter:
      return Combined(rank * shape_.count + index);
    case Operation::kAllGather:
      return {Given(static_cast<int>(index / shape_.count), index % shape_.count), 0};
    case Operation::kAllToAll:
      return {
          Given(static_cast<int>(index / shape_.count), rank * shape_.count + index % shape_.count),
          0};
    case Operation::kBroadcast:
    case Operation::kRecv:
      return {Given(shape_.root, index), 0};
    default:
      return {0, 0};
  }
}

bool Exchange::InputUnchanged() {
  std::vector<uint8_t> given(InCount() * SizeOf(shape_.type));
  FillInput(given.data(), InCount());
  return std::equal(given.begin(), given.end(), in_.bytes());
}

void Exchange::CheckOutput(uint8_t* at) {
  const size_t width = SizeOf(shape_.type);
  const size_t count = OutCount();
  // Parts of a gathered output each begin their own period.
  const size_t part = std::min(
      count, shape_.operation == Operation::kAllGather || shape_.operation == Operation::kAllToAll
                 ? shape_.count
                 : count);
  for (size_t start = 0; start < count; start += part) {
    const size_t first = std::min(part, kPeriod);
    std::vector<Expected> expected(first);
    std::vector<uint8_t> exact(first * width);
    for (size_t i = 0; i < first; ++i) {
      expected[i] = At(start + i);
      Encode(shape_.type, expected[i].value, exact.data() + i * width);
    }
    for (size_t done = 0; done < part; done += kPeriod) {
      const size_t now = std::min(kPeriod, part - done);
      uint8_t* const from = at + (start + done) * width;
      if (!shape_.wire && std::memcmp(from, exact.data(), now * width) == 0) continue;
      for (size_t i = 0; i < now; ++i) {
        const Value got = Decode(shape_.type, from + i * width);
        const Value wanted = expected[i].tolerance == 0
                                 ? Decode(shape_.type, exact.data() + i * width)
                                 : expected[i].value;
        const bool right = std::fabs(got - wanted) <= expected[i].tolerance;
        const bool narrow = !shape_.wire || size_ == 1 || RoundTo(*shape_.wire, got) == got;
        if (right && narrow) continue;
        session_.Expect(
            false, Format("{}: index {}: got {:.19g}, expected {:.19g} within {:.3g}{}",
                          Describe(shape_), start + done + i, got, wanted, expected[i].tolerance,
                          narrow ? "" : ": wider than the wire type"));
        return;
      }
    }
  }
  session_.Expect(true, "");
}

void Exchange::Verify(const Status& status) {
  const std::string what = Describe(shape_);
  const bool fine = session_.Fine(status, what);
  if (!session_.Expect(in_.Download() && out_.Download(), what + ": download from the GPU")) return;
  session_.Expect(in_.GuardsHold() && out_.GuardsHold(), what + ": wrote outside of the buffers");
  if (HasInput() && (!shape_.in_place || !HasOutput())) {
    session_.Expect(InputUnchanged(), what + ": the input was changed");
  }
  if (!HasOutput()) {
    const uint8_t* const bytes = out_.bytes();
    session_.Expect(
        std::all_of(bytes, bytes + out_.size(), [](uint8_t byte) { return byte == kUnwritten; }),
        what + ": wrote where it must not");
    return;
  }
  if (!fine) return;
  uint8_t* at = shape_.in_place ? in_.bytes() : out_.bytes();
  if (shape_.in_place && shape_.operation == Operation::kReduceScatter) {
    at += static_cast<size_t>(rank_) * shape_.count * SizeOf(shape_.type);
  }
  CheckOutput(at);
}

void RunOne(Session& session, Group& group, const Shape& shape) {
  if (session.broken()) return;
  Exchange exchange(session, group, shape);
  const bool by_name = session.NextTurn() % 3 != 0 && !shape.wire && shape.config.IsDefault();
  exchange.Verify(by_name ? RunByName(group, exchange.call()) : group.Run(exchange.call()));
}

bool RunOrRefuse(Session& session, Group& group, const Shape& shape) {
  if (session.broken()) return false;
  Exchange exchange(session, group, shape);
  const Status status = group.Run(exchange.call());
  // Had some ranks refused and others not, the others' next calls would not match this one.
  int64_t mine = status.ok() ? 1 : 0;
  int64_t all = 0;
  const Status agreed = group.AllReduce(&mine, &all, 1, DataType::kI64);
  session.Fine(agreed, Describe(shape) + ": the all_reduce after it");
  session.Expect(!agreed.ok() || all == mine * group.size(),
                 Describe(shape) + ": not the same answer on every rank");
  if (status.ok()) {
    exchange.Verify(status);
    return true;
  }
  if (agreed.ok()) session.Refused(status, Describe(shape));
  return false;
}

}  // namespace diapason::conformance
