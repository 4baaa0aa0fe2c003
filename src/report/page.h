#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/page_data.h"

namespace diapason::report {

// The page of `diapason report`: one self-contained HTML file that shows PageData, without a
// network. Its scripts and styles are those of assets/, compiled in.

// The size limit of the file in bytes.
inline constexpr size_t kMostPageBytes = 1500000;

// Leaves out what does not fit, least important first, and says so on the page. `nonce` must be
// unpredictable: the page's own scripts carry it, and the browser runs no others.
std::string PageHtml(const PageData& data, const std::string& nonce,
                     size_t most_bytes = kMostPageBytes);

// The data for the scripts. Safe inside an element of the page, whatever the data contain.
std::string PageJson(const PageData& data);
// One or two sentences: what was measured, and the result.
std::string LeadText(const PageData& data);

// The files of assets/, embedded by embed.cmake: "page.html", "page.css", and all scripts as one.
std::string_view PageTemplate();
std::string_view PageStyle();
std::string_view PageScript();
std::string_view JobScript();  // of the page of a tuned job

// What pages are made of; title and lead are texts, not markup.
struct PageParts {
  std::string title;
  std::string lead;
  std::string version;
  std::string json;
  std::string_view script;
};
std::string FillPage(const PageParts& parts, const std::string& nonce);
// A word that the author of the data cannot have known.
std::string PageNonce();

}  // namespace diapason::report
