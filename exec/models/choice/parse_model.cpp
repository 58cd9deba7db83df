// Reads the choice of exec/models/choice/model_choice.h.
#include "exec/models/choice/model_choice.h"

#include "profiles/error.h"
#include "profiles/json_settings.h"

namespace frazil {
namespace {

// Throws unless `heads` divide `dim`.
void expect_even_heads(const Given& heads_given, int heads, const Given& dim_given, int dim) {
  if (dim % heads == 0) return;
  blame({heads_given, dim_given},
        with_value("dim", dim) + " divisible by " + with_value("heads", heads));
}

ModelChoice parse_vit(JsonFields& fields) {
  VitConfig model;
  const Given image = take(fields, "image", 1, kLargestCount, model.image);
  take(fields, "channels", 1, kLargestCount, model.channels);
  const Given patch = take(fields, "patch", 1, kLargestCount, model.patch);
  const Given dim = take(fields, "dim", 1, kLargestCount, model.dim);
  take(fields, "blocks", 1, kLargestCount, model.blocks);
  const Given heads = take(fields, "heads", 1, kLargestCount, model.heads);
  take(fields, "classes", 2, kLargestCount, model.classes);
  take(fields, "dropout", Range::kFraction, model.dropout);
  if (model.image % model.patch != 0) {
    blame({patch, image},
          with_value("image", model.image) + " divisible by " + with_value("patch", model.patch));
  }
  expect_even_heads(heads, model.heads, dim, model.dim);
  return model;
}

using Parser = ModelChoice (*)(JsonFields&);
constexpr std::array<Parser, kModelKinds.size()> kParsers{parse_vit};

}  // namespace

ModelChoice parse_model(const JsonCursor& object) {
  JsonFields fields(object);
  const std::size_t kind = take_name(fields, "kind", kModelKinds);
  ModelChoice choice = kParsers.at(kind)(fields);
  ENSURE(choice.index() == kind, "the kinds in one order");
  fields.finish();
  return choice;
}

}  // namespace frazil
