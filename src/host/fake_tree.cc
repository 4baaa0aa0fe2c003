#include "host/fake_tree.h"

#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "base/text.h"

namespace diapason::host {
namespace {

namespace fs = std::filesystem;
using Names = std::map<std::string, std::string>;

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::vector<Names> RoundsOf(const std::string& line) {
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;
  for (const std::string_view word : Split(line, ' ')) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    std::vector<std::string> values;
    for (const std::string_view value : Split(word.substr(equals + 1), ',')) {
      values.emplace_back(value);
    }
    lists.emplace_back(word.substr(0, equals), values);
  }
  if (lists.empty()) return {{}};
  std::vector<Names> rounds;
  if (line.starts_with("@pairs")) {
    for (const std::string& a : lists[0].second) {
      for (const std::string& b : lists[1].second) {
        if (a != b) rounds.push_back({{lists[0].first, a}, {lists[1].first, b}});
      }
    }
    return rounds;
  }
  for (size_t i = 0; i < lists[0].second.size(); ++i) {
    Names names;
    for (const auto& [name, values] : lists) names[name] = values.at(i);
    rounds.push_back(names);
  }
  return rounds;
}

std::vector<std::string> Expanded(const std::string& path) {
  std::vector<std::string> lines;
  std::vector<Names> rounds = {{}};
  std::vector<std::string> block;
  const auto finish = [&] {
    for (const Names& names : rounds) {
      for (std::string line : block) {
        for (const auto& [name, value] : names) line = Replaced(line, "<" + name + ">", value);
        lines.push_back(line);
      }
    }
    block.clear();
  };
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("include ")) {
      const std::string other = fs::path(path).parent_path() / line.substr(8);
      for (const std::string& one : Expanded(other)) lines.push_back(one);
    } else if (line[0] == '@') {
      finish();
      rounds = RoundsOf(line);
    } else {
      block.push_back(line);
    }
  }
  finish();
  return lines;
}

std::string Bytes(const std::string& text) {
  std::istringstream words(text);
  size_t size = 0;
  words >> size;
  std::string content(size, '\0');
  std::string word;
  while (words >> word) {
    const size_t colon = word.find(':');
    size_t at = std::strtoul(word.substr(0, colon).c_str(), nullptr, 16);
    for (size_t i = colon + 1; i + 1 < word.size(); i += 2) {
      content.at(at++) = static_cast<char>(std::strtoul(word.substr(i, 2).c_str(), nullptr, 16));
    }
  }
  return content;
}

template <typename Record>
void Append(std::string* bytes, const Record& record) {
  bytes->append(reinterpret_cast<const char*>(&record), sizeof record);
}

}  // namespace

FakeTree::FakeTree(const std::string& name) {
  if (root_.empty()) {
    trouble_ = "no temporary folder";
    return;
  }
  const std::string path = name.starts_with('/') ? name : DIAPASON_HOSTS "/" + name;
  if (!name.empty() && !fs::exists(path)) trouble_ = "no file " + path;
  if (name.empty()) return;
  for (const std::string& line : Expanded(path)) Add(line);
}

void FakeTree::Add(const std::string& line) {
  const size_t blank = line.find(' ');
  const std::string path = line.substr(0, blank);
  const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
  std::error_code error;
  if (path == "delete") {
    fs::remove_all(root_ + rest, error);
    return;
  }
  const size_t second = rest.find(' ');
  const std::string kind = rest.substr(0, second);
  const std::string value = second == std::string::npos ? "" : rest.substr(second + 1);
  const fs::path target = root_ + path;
  fs::create_directories(target.parent_path(), error);
  if (kind == "/") {
    fs::create_directories(target, error);
  } else if (kind == "->") {
    fs::create_symlink(value, target, error);
  } else if (kind == "=") {
    std::ofstream(target) << Replaced(Replaced(value, "\\n", "\n"), "\\t", "\t") << "\n";
  } else if (kind == "elf") {
    std::ofstream(target) << FakeElf(value);
  } else if (kind == "bytes") {
    std::ofstream(target) << Bytes(value);
  } else {
    trouble_ = "cannot read '" + line + "'";
  }
  if (error) trouble_ = line + ": " + error.message();
}

std::string FakeElf(const std::string& text) {
  std::map<std::string, std::vector<std::string>> parts;
  for (const std::string_view part : Split(text, ';')) {
    const std::string_view pair = Trim(part);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    for (const std::string_view word : Split(pair.substr(equals + 1), ',')) {
      parts[std::string(pair.substr(0, equals))].emplace_back(Trim(word));
    }
  }
  std::string names(1, '\0');
  std::string dynamic;
  const std::pair<int64_t, const char*> tags[] = {
      {DT_NEEDED, "needed"}, {DT_SONAME, "soname"}, {DT_RPATH, "rpath"}, {DT_RUNPATH, "runpath"}};
  for (const auto& [tag, key] : tags) {
    for (const std::string& word : parts[key]) {
      Append(&dynamic, Elf64_Dyn{tag, {names.size()}});
      names += word + '\0';
    }
  }
  Append(&dynamic, Elf64_Dyn{DT_NULL, {0}});
  for (const std::string& word : parts["symbols"]) names += word + '\0';
  std::string data(1, '\0');
  for (const std::string& word : parts["text"]) data += Replaced(word, "\\n", "\n") + '\0';

  const std::string titles("\0.dynstr\0.dynamic\0.rodata\0.shstrtab\0", 36);
  const std::pair<const char*, std::string> sections[] = {{"", ""},
                                                          {".dynstr", names},
                                                          {".dynamic", dynamic},
                                                          {".rodata", data},
                                                          {".shstrtab", titles}};
  std::string body;
  std::string table;
  for (const auto& [name, content] : sections) {
    Elf64_Shdr section{};
    section.sh_name = *name == '\0' ? 0 : static_cast<uint32_t>(titles.find(name));
    section.sh_type = *name == '\0' ? SHT_NULL : SHT_PROGBITS;
    section.sh_offset = sizeof(Elf64_Ehdr) + body.size();
    section.sh_size = content.size();
    Append(&table, section);
    body += content;
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = sizeof header + body.size();
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 5;
  header.e_shstrndx = 4;
  std::string file;
  Append(&file, header);
  return file + body + table;
}

}  // namespace diapason::host
