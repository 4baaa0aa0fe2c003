#include <algorithm>
#include <optional>

#include "base/text.h"
#include "knobs/files/collector.h"
#include "knobs/files/yaml_scalars.h"

namespace diapason::knobs {
namespace {

constexpr size_t kDeepestNode = 200;

// A key or a list item that is open at the current line.
struct Node {
  size_t column = 0;
  bool item = false;
  std::string scope;  // of what stands in it
  std::string key;    // "" for items
  // Of "- name: A" with "value: x".
  std::string named;
  size_t named_line = 0;
  bool valued = false;
};

class YamlReader {
 public:
  YamlReader(std::string_view text, const Nested& at, Collector* out)
      : kubernetes_(text.starts_with("apiVersion:") ||
                    text.find("\napiVersion:") != std::string_view::npos),
        lines_(Split(text, '\n')),
        at_(at),
        out_(*out),
        document_(at.scope) {}

  void Run() {
    for (i_ = 0; i_ < lines_.size() && !out_.Full(); ++i_) Line();
    CloseAll();
  }

 private:
  size_t Number() const { return at_.line + i_; }

  void Line() {
    std::string_view line = lines_[i_];
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view trimmed = Trim(line);
    if (trimmed == "---" || trimmed.starts_with("--- ")) {
      CloseAll();
      document_ = out_.NewScope(at_.scope);
      return;
    }
    // Comments, and the control lines of templates.
    if (trimmed.empty() || trimmed[0] == '#' || trimmed.starts_with("{{") ||
        trimmed.starts_with("{%")) {
      return;
    }
    size_t column = line.find_first_not_of(' ');
    if (column == std::string_view::npos || column > 1000) return;
    std::string_view rest = Trim(line);
    while (rest == "-" || rest.starts_with("- ")) {
      CloseTo(column, /*items=*/true);
      Open(column, /*item=*/true, "");
      const std::string_view after = Trim(rest.substr(1));
      column += rest.size() - after.size();
      rest = after;
    }
    if (rest.empty()) return;
    const std::optional<YamlKey> key = SplitYamlKey(rest);
    if (!key) return Item(rest);
    CloseTo(column, /*items=*/false);
    Open(column, /*item=*/false, key->key);
    Entry(*key, column);
  }

  // Closes what is not around `column`: a list may stand in the column of its key.
  void CloseTo(size_t column, bool items) {
    while (!nodes_.empty()) {
      const Node& top = nodes_.back();
      if (top.column < column || (items && top.column == column && !top.item)) return;
      CloseLast();
    }
  }
  void CloseAll() {
    while (!nodes_.empty()) CloseLast();
  }
  void CloseLast() {
    const Node& top = nodes_.back();
    if (!top.named.empty() && !top.valued) out_.Pass(top.named, top.named_line, Owner(1));
    nodes_.pop_back();
  }

  void Open(size_t column, bool item, const std::string& key) {
    if (nodes_.size() >= kDeepestNode) return;
    Node node;
    node.column = column;
    node.item = item;
    node.key = key;
    node.scope = out_.NewScope(nodes_.empty() ? document_ : nodes_.back().scope);
    nodes_.push_back(std::move(node));
  }

  // The scope of the object whose environment a node is part of, `up` nodes above the last: the
  // container of env: - name:, the service of environment: A:, the step of run:.
  std::string Owner(size_t up) const {
    if (nodes_.size() <= up + 1) return document_;
    return nodes_[nodes_.size() - up - 2].scope;
  }

  // What stands right of "key:".
  void Entry(const YamlKey& key, size_t column) {
    YamlValue value = ReadYamlValue(lines_, &i_, key.rest, column);
    if (CountsInFiles(key.key)) {
      if (value.kind == YamlValue::Kind::kScalar) {
        return out_.Set(key.key, value.text, value.known, LineOf(value), Owner(1));
      }
      if (value.kind == YamlValue::Kind::kBlock) {
        return out_.Set(key.key, std::string(Trim(value.text)), false, LineOf(value), Owner(1));
      }
      // A map with a value in it, or handed on from outside.
      nodes_.back().named = key.key;
      nodes_.back().named_line = Number();
      return;
    }
    Member(key.key, value);
    const bool holds_value = key.key == "value" || key.key == "default";
    Text(value, holds_value ? Owner(2) : Owner(0));
  }

  size_t LineOf(const YamlValue& value) const { return at_.line + value.line; }

  // name and value of the object around them.
  void Member(const std::string& key, const YamlValue& value) {
    if (nodes_.size() < 2 || value.kind != YamlValue::Kind::kScalar) return;
    Node& object = nodes_[nodes_.size() - 2];
    if (key == "name" && object.item && CountsInFiles(value.text)) {
      object.named = value.text;
      object.named_line = LineOf(value);
      if (!object.valued) return;
      out_.Set(object.named, early_.text, early_.known, object.named_line, Owner(2));
    } else if (key == "value" || (key == "default" && !object.item)) {
      object.valued = true;
      early_ = value;
      if (object.named.empty()) return;
      if (key == "value" && object.item) TakesText(object.named, value);
      out_.Set(object.named, value.text, value.known, LineOf(value), Owner(2));
    }
  }

  // A list item without a key: "- NCCL_DEBUG=INFO", "- |".
  void Item(std::string_view rest) {
    const size_t column = nodes_.empty() ? 0 : nodes_.back().column;
    const YamlValue value = ReadYamlValue(lines_, &i_, std::string(rest), column);
    if (value.kind == YamlValue::Kind::kScalar && CountsInFiles(value.text)) {
      return out_.Pass(value.text, LineOf(value), Owner(1));
    }
    if (value.kind == YamlValue::Kind::kScalar && !value.quoted && QuotesStay(value)) return;
    Text(value, Owner(1));
  }

  // - NCCL_SOCKET_IFNAME="eth0" in a list "environment": YAML leaves these quotes in the text.
  bool QuotesStay(const YamlValue& value) {
    if (nodes_.size() < 2 || nodes_[nodes_.size() - 2].key != "environment") return false;
    const size_t equals = value.text.find('=');
    if (equals == std::string::npos || equals + 2 >= value.text.size()) return false;
    const std::string name = value.text.substr(0, equals);
    const std::string inside = value.text.substr(equals + 1);
    const char quote = inside[0];
    if ((quote != '"' && quote != '\'') || inside.back() != quote || !CountsInFiles(name)) {
      return false;
    }
    out_.Complain(
        "env.bad-line", Severity::kError, LineOf(value),
        "the quotes around the value of " + name + " become a part of it",
        "Write " + name + "=" + inside.substr(1, inside.size() - 2) + ", or quote the whole item");
    out_.Set(name, inside, /*known=*/false, LineOf(value), Owner(1));
    return true;
  }

  // Kubernetes takes texts only, and refuses a file with a number or a boolean.
  void TakesText(const std::string& name, const YamlValue& value) {
    const std::string lower = ToLower(value.text);
    const bool number =
        !value.text.empty() && value.text.find_first_not_of("0123456789") == std::string::npos;
    if (!kubernetes_ || value.quoted || !value.known) return;
    if (!number && lower != "true" && lower != "false") return;
    out_.Complain("env.bad-line", Severity::kError, LineOf(value),
                  "Kubernetes refuses the value of " + name + ": " + value.text +
                      " without quotes is no text",
                  "Write \"" + value.text + "\"");
  }

  // Texts with assignments: arguments, commands, whole scripts, flow maps.
  void Text(const YamlValue& value, const std::string& scope) {
    if (value.kind == YamlValue::Kind::kFlow) return Flow(value, scope);
    if (!HasAssignment(value.text) && value.kind != YamlValue::Kind::kBlock) return;
    if (at_.depth + 1 >= kDeepest) return;
    if (value.kind == YamlValue::Kind::kBlock) {
      const Nested inside = {LineOf(value), out_.NewScope(scope, true), at_.depth + 1};
      return ReadAny(value.text, "", inside, &out_);
    }
    const size_t equals = value.text.find('=');
    const std::string name = value.text.substr(0, equals);
    if (CountsInFiles(name)) {
      // "- NCCL_ALGO=ring;allreduce:tree": one variable, unless a command follows.
      const std::string rest = value.text.substr(equals + 1);
      if (rest.find(' ') == std::string::npos) {
        return out_.Set(name, rest, !IsTemplate(rest), LineOf(value), scope);
      }
    }
    ReadShell(value.text, {LineOf(value), scope, at_.depth + 1}, &out_);
  }

  void Flow(const YamlValue& value, const std::string& scope) {
    std::string named;
    for (const FlowEntry& entry : ReadFlow(value.text)) {
      const size_t line = LineOf(value) + entry.line;
      if (entry.key == "name" && CountsInFiles(entry.value)) {
        out_.Pass(entry.value, line, scope);
        named = entry.value;
      } else if (entry.key == "value" && !named.empty()) {
        out_.Set(named, entry.value, entry.known, line, scope);
        named.clear();
      } else if (CountsInFiles(entry.key)) {
        out_.Set(entry.key, entry.value, entry.known, line, scope);
      } else if (HasAssignment(entry.value)) {
        YamlValue text;
        text.text = entry.value;
        text.line = value.line + entry.line;
        Text(text, scope);
      }
    }
  }

  const bool kubernetes_;
  const std::vector<std::string_view> lines_;
  const Nested at_;
  Collector& out_;
  std::string document_;
  std::vector<Node> nodes_;
  YamlValue early_;  // a value that stands before its name
  size_t i_ = 0;
};

}  // namespace

void ReadYaml(std::string_view text, const Nested& at, Collector* out) {
  if (at.depth < kDeepest) YamlReader(text, at, out).Run();
}

}  // namespace diapason::knobs
