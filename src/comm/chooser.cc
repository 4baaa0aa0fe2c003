#include "comm/chooser.h"

#include "comm/backend_facts.h"
#include "comm/tally.h"
#include "domain/collectives.h"
#include "policy/source.h"

namespace diapason::comm {

PolicyChooser::PolicyChooser(std::shared_ptr<const policy::Policy> policy, const Shape& shape)
    : policy_(std::move(policy)),
      table_(*policy_, {shape, false, false}),
      ranks_(static_cast<int>(shape.ranks)) {}

Config PolicyChooser::ConfigFor(const Call& call) const {
  const std::optional<Collective> collective = CollectiveOf(call.operation);
  if (!collective.has_value()) return {};
  Question question;
  question.collective = *collective;
  question.bytes = CallBytes(call, ranks_);
  const policy::DecisionTable::Entry* const entry = table_.Find(question);
  return entry == nullptr ? Config() : entry->config();
}

Result<std::shared_ptr<const policy::Policy>> LoadChoices(const std::string& file,
                                                          const std::string& backend,
                                                          const std::string& cluster) {
  policy::ParseOptions parse;
  parse.check_rows = false;
  ASSIGN_OR_RETURN(const Library library, LibraryOf(backend, cluster));
  parse.library = library;
  ASSIGN_OR_RETURN(policy::Policy loaded,
                   policy::LoadPolicy({policy::Source::Kind::kFile, file, ""}, parse));
  return std::make_shared<const policy::Policy>(std::move(loaded));
}

}  // namespace diapason::comm
