#include "flight_recorder/pickle.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "flight_recorder/byte_source.h"
#include "flight_recorder/pickle_opcodes.h"

namespace diapason::flight_recorder {

// The stack machine of the format, without the part of it that runs code.
class Unpickler {
 public:
  using Kind = PickleValue::Kind;

  Unpickler(ByteSource* source, Pickle* pickle) : source_(source), pickle_(pickle) {}

  Status Run() {
    uint8_t opcode = 0;
    while (source_->Byte(&opcode)) {
      if (opcode == '.') {
        if (stack_.empty()) return Broken("the end comes before a value");
        pickle_->root_ = stack_.back();
        return {};
      }
      RETURN_IF_ERROR(Step(opcode));
      if (made_ > Pickle::kMostValues || stack_.size() > Pickle::kMostValues) {
        return Invalid(Format("the pickle has more than {} values", Pickle::kMostValues));
      }
      if (bytes_ > Pickle::kMostBytes) {
        return Invalid(
            Format("the texts of the pickle have more than {} MiB", Pickle::kMostBytes >> 20));
      }
    }
    if (source_->error() != 0) return IoError(ErrnoText(source_->error()));
    return Ended();
  }

 private:
  Status Broken(std::string_view why) const {
    return Invalid(Format("the pickle is damaged at byte {}: {}", source_->position(), why));
  }
  Status Ended() const {
    if (source_->error() != 0) return IoError(ErrnoText(source_->error()));
    return Invalid(Format("the pickle breaks off at byte {}", source_->position()));
  }

  Status Step(uint8_t opcode) {
    const std::string_view refused = RefusedOpcode(opcode);
    if (!refused.empty()) {
      return Invalid(
          Format("the pickle has the opcode {} at byte {}, which is not plain data and could run "
                 "code; it is not read",
                 refused, source_->position()));
    }
    switch (opcode) {
      case 0x80:
        return Skip(1);  // PROTO
      case 0x95:
        return Skip(8);  // FRAME
      case '(':
        if (marks_.size() >= Pickle::kDeepestMarks) return Broken("it is nested too deep");
        marks_.push_back(stack_.size());
        return {};
      case '0':
        return Pop();
      case '1':
        return PopToMark();
      case '2':
        return stack_.size() > Floor() ? Push(stack_.back()) : Broken("nothing to repeat");
      case 'N':
        return Push({});
      case 0x88:
        return PushNumber(Kind::kBool, 1);
      case 0x89:
        return PushNumber(Kind::kBool, 0);
      case 'g':
      case 'h':
      case 'j':
        return Get(opcode);
      case 'p':
      case 'q':
      case 'r':
      case 0x94:
        return Put(opcode);
      default:
        break;
    }
    if (opcode == 0) return Broken("there is no opcode 0x00");
    if (std::strchr("IJKMLFG", opcode) != nullptr || opcode == 0x8a || opcode == 0x8b) {
      return Numbers(opcode);
    }
    if (std::strchr(")t]lae}dsu", opcode) != nullptr || (opcode >= 0x85 && opcode <= 0x87)) {
      return Containers(opcode);
    }
    return Texts(opcode);
  }

  Status Numbers(uint8_t opcode) {
    uint64_t number = 0;
    std::string text;
    switch (opcode) {
      case 'K':
      case 'M':
        if (!source_->Number(opcode == 'K' ? 1 : 2, &number)) return Ended();
        return PushNumber(Kind::kInt, static_cast<int64_t>(number));
      case 'J':
        if (!source_->Number(4, &number)) return Ended();
        return PushNumber(Kind::kInt, static_cast<int32_t>(static_cast<uint32_t>(number)));
      case 'G':
        return BigEndianFloat();
      case 0x8a:
      case 0x8b:
        if (!source_->Number(opcode == 0x8a ? 1 : 4, &number)) return Ended();
        // Numbers of a few bytes occur.
        if (number > 1024) return Broken("a number is too long");
        if (!source_->Text(number, 1024, &text)) return Ended();
        return PushNumber(Kind::kInt, LongNumber(text));
      default:
        return TextNumber(opcode);
    }
  }

  Status BigEndianFloat() {
    uint64_t bits = 0;
    if (!source_->Number(8, &bits)) return Ended();
    PickleValue value;
    value.kind = Kind::kFloat;
    bits = __builtin_bswap64(bits);
    std::memcpy(&value.real, &bits, sizeof bits);
    return Push(value);
  }

  // Of protocol 0: "I01", "L12L", "F1.5".
  Status TextNumber(uint8_t opcode) {
    std::string text;
    if (!source_->Line(64, &text)) return Ended();
    if (opcode == 'I' && (text == "00" || text == "01")) {
      return PushNumber(Kind::kBool, text == "01" ? 1 : 0);
    }
    if (opcode == 'F') {
      PickleValue value;
      value.kind = Kind::kFloat;
      value.real = std::strtod(text.c_str(), nullptr);
      return Push(value);
    }
    if (text.ends_with('L')) text.pop_back();
    int64_t number = 0;
    if (!ParseSigned(text, &number)) return Broken("a number is wrong");
    return PushNumber(Kind::kInt, number);
  }

  Status Texts(uint8_t opcode) {
    int size = 0;
    switch (opcode) {
      case 'U':
      case 'C':
      case 0x8c:
        size = 1;
        break;
      case 'T':
      case 'X':
      case 'B':
        size = 4;
        break;
      case 0x8d:
      case 0x8e:
      case 0x96:
        size = 8;
        break;
      case 'S':
      case 'V':
        break;
      default:
        return Broken(Format("there is no opcode 0x{:02x}", opcode));
    }
    std::string text;
    if (size == 0) {
      if (!source_->Line(Pickle::kLongestText, &text)) return Ended();
      // 'text' or "text"; the escapes inside stay as they are.
      if (opcode == 'S' && text.size() >= 2) text = text.substr(1, text.size() - 2);
    } else {
      uint64_t length = 0;
      if (!source_->Number(size, &length)) return Ended();
      if (!source_->Text(length, Pickle::kLongestText, &text)) return Ended();
    }
    bytes_ += text.size();
    PickleValue value;
    value.kind = Kind::kText;
    value.index = pickle_->texts_.size();
    pickle_->texts_.push_back(std::move(text));
    ++made_;
    return Push(value);
  }

  Status Containers(uint8_t opcode) {
    switch (opcode) {
      case ')':
      case ']':
        return PushList({});
      case '}':
        return PushDict();
      case 0x85:
      case 0x86:
      case 0x87:
        return TakeTuple(opcode - 0x84U);
      case 't':
      case 'l': {
        if (marks_.empty()) return Broken("a mark is missing");
        const size_t count = stack_.size() - marks_.back();
        marks_.pop_back();
        return TakeTuple(count);
      }
      case 'a':
        return Append(1);
      case 'e':
        return AppendMarked();
      case 'd': {
        if (marks_.empty()) return Broken("a mark is missing");
        // The dict goes below the items, as SETITEMS expects it.
        stack_.insert(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), NewDict());
        ++marks_.back();
        return SetMarked();
      }
      case 's':
        return Set(2);
      default:
        return SetMarked();
    }
  }

  Status TakeTuple(size_t count) {
    if (stack_.size() < Floor() + count) return Broken("values are missing");
    std::vector<PickleValue> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return PushList(std::move(items));
  }

  Status AppendMarked() {
    if (marks_.empty()) return Broken("a mark is missing");
    const size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return Append(count);
  }
  Status Append(size_t count) {
    if (stack_.size() < Floor() + count + 1) return Broken("values are missing");
    const PickleValue& list = stack_[stack_.size() - count - 1];
    if (list.kind != Kind::kList)
      return Broken("values are appended to something else than a list");
    std::vector<PickleValue>& items = pickle_->lists_[list.index];
    items.insert(items.end(), stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    made_ += count;
    return {};
  }

  Status SetMarked() {
    if (marks_.empty()) return Broken("a mark is missing");
    const size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return Set(count);
  }
  Status Set(size_t count) {
    if (count % 2 != 0) return Broken("a key has no value");
    if (stack_.size() < Floor() + count + 1) return Broken("values are missing");
    const PickleValue& dict = stack_[stack_.size() - count - 1];
    if (dict.kind != Kind::kDict) return Broken("keys are set in something else than a dict");
    auto& pairs = pickle_->dicts_[dict.index];
    for (size_t i = stack_.size() - count; i < stack_.size(); i += 2) {
      pairs.emplace_back(stack_[i], stack_[i + 1]);
    }
    stack_.resize(stack_.size() - count);
    made_ += count;
    return {};
  }

  Status Get(uint8_t opcode) {
    uint64_t index = 0;
    RETURN_IF_ERROR(MemoIndex(opcode, 'g', 'h', &index));
    if (index >= memo_.size()) return Broken("a value is used before it is stored");
    return Push(memo_[index]);
  }
  Status Put(uint8_t opcode) {
    uint64_t index = memo_.size();
    if (opcode != 0x94) RETURN_IF_ERROR(MemoIndex(opcode, 'p', 'q', &index));
    if (stack_.size() <= Floor()) return Broken("there is no value to store");
    if (index >= Pickle::kMostValues) return Broken("the number of a stored value is too large");
    if (index >= memo_.size()) memo_.resize(index + 1);
    memo_[index] = stack_.back();
    return {};
  }
  Status MemoIndex(uint8_t opcode, char line, char one, uint64_t* index) {
    if (opcode != static_cast<uint8_t>(line)) {
      return source_->Number(opcode == static_cast<uint8_t>(one) ? 1 : 4, index) ? Status()
                                                                                 : Ended();
    }
    std::string text;
    if (!source_->Line(32, &text)) return Ended();
    return ParseUnsigned(text, index) ? Status() : Broken("a number is wrong");
  }

  Status Skip(uint64_t bytes) {
    std::string ignored;
    return source_->Text(bytes, 0, &ignored) ? Status() : Ended();
  }
  // Values below the last mark are out of reach.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Status Pop() {
    if (stack_.size() <= Floor()) return Broken("there is no value to remove");
    stack_.pop_back();
    return {};
  }
  Status PopToMark() {
    if (marks_.empty()) return Broken("a mark is missing");
    stack_.resize(marks_.back());
    marks_.pop_back();
    return {};
  }
  Status Push(const PickleValue& value) {
    stack_.push_back(value);
    return {};
  }
  Status PushNumber(Kind kind, int64_t number) {
    PickleValue value;
    value.kind = kind;
    value.number = number;
    return Push(value);
  }
  Status PushList(std::vector<PickleValue> items) {
    PickleValue value;
    value.kind = Kind::kList;
    value.index = pickle_->lists_.size();
    made_ += items.size() + 1;
    pickle_->lists_.push_back(std::move(items));
    return Push(value);
  }
  PickleValue NewDict() {
    PickleValue value;
    value.kind = Kind::kDict;
    value.index = pickle_->dicts_.size();
    pickle_->dicts_.emplace_back();
    ++made_;
    return value;
  }
  Status PushDict() { return Push(NewDict()); }

  ByteSource* source_;
  Pickle* pickle_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::vector<PickleValue> memo_;
  size_t made_ = 0;
  size_t bytes_ = 0;
};

Status Pickle::Parse(int fd, std::string_view start) {
  ByteSource source(fd, start);
  return Unpickler(&source, this).Run();
}

const std::string& Pickle::Text(const PickleValue& value) const {
  static const std::string none;
  return value.kind == Kind::kText ? texts_[value.index] : none;
}

const std::vector<PickleValue>& Pickle::Items(const PickleValue& value) const {
  static const std::vector<PickleValue> none;
  return value.kind == Kind::kList ? lists_[value.index] : none;
}

const std::vector<std::pair<PickleValue, PickleValue>>& Pickle::Pairs(
    const PickleValue& value) const {
  static const std::vector<std::pair<PickleValue, PickleValue>> none;
  return value.kind == Kind::kDict ? dicts_[value.index] : none;
}

const PickleValue* Pickle::Find(const PickleValue& dict, std::string_view key) const {
  size_t searched = 0;
  for (const auto& [name, value] : Pairs(dict)) {
    if (++searched > kMostSearched) break;
    if (name.kind == Kind::kText && texts_[name.index] == key) return &value;
  }
  return nullptr;
}

}  // namespace diapason::flight_recorder
