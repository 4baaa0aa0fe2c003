#include <array>

#include "base/text.h"
#include "domain/collectives.h"

namespace diapason {
namespace {

constexpr std::array<const char*, 8> kTypes{"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64"};
// nccl-tests' names; accepted, never printed.
constexpr std::array<const char*, 8> kOtherTypes{"float", "double", "half",  "bfloat16",
                                                 "int8",  "uint8",  "int32", "int64"};
constexpr std::array<const char*, 5> kReductions{"sum", "prod", "min", "max", "avg"};
constexpr auto kOperationNames = [] {
  std::array<const char*, kOperationCount> names{};
  for (const OperationFacts& facts : kOperations) {
    names.at(static_cast<size_t>(facts.operation)) = facts.name;
  }
  return names;
}();

template <typename Enum, typename Table>
Result<Enum> Parse(const char* what, const std::string& name, const Table& table) {
  for (size_t i = 0; i < table.size(); ++i) {
    if (FoldName(name) == FoldName(table[i])) return static_cast<Enum>(i);
  }
  const std::vector<std::string> names(table.begin(), table.end());
  return Invalid(Format("unknown {} '{}'", what, name) + Suggestion(name, names));
}

}  // namespace

const char* DataTypeName(DataType type) { return kTypes[static_cast<size_t>(type)]; }
const char* ReduceOpName(ReduceOp reduce) { return kReductions[static_cast<size_t>(reduce)]; }
const char* OperationName(Operation operation) {
  return kOperationNames[static_cast<size_t>(operation)];
}

Result<DataType> ParseDataType(const std::string& name) {
  const Result<DataType> ours = Parse<DataType>("data type", name, kTypes);
  if (ours.ok()) return ours;
  // Last, so that the error lists the names that --help has.
  return Parse<DataType>("data type", name, kOtherTypes);
}
Result<ReduceOp> ParseReduceOp(const std::string& name) {
  return Parse<ReduceOp>("reduction", name, kReductions);
}
Result<Operation> ParseOperation(const std::string& name) {
  return Parse<Operation>("operation", name, kOperationNames);
}

}  // namespace diapason
