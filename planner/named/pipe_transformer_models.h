#pragma once
// The models of PipeTransformer (He et al. 2021) as its partitioners see them: a chain of units,
// none of which cuts a residual branch, with their numbers of trainable parameters, from the shapes
// of the layers. Each transformer layer is an attention unit (normalization, four projections with
// biases) and an MLP unit (two projections, normalization). The embedding stands before all layers,
// and the remaining units behind them.

#include <cstdint>
#include <string>
#include <vector>

namespace frazil {

struct ParameterUnit {
  std::string name;
  int layer = 0;  // 0 for the embedding, 1..L for the layers, L + 1 for what follows them
  std::int64_t parameters = 0;
  friend bool operator==(const ParameterUnit&, const ParameterUnit&) = default;
};

struct TransformerShape {
  int layers = 12;
  int hidden = 768;
  int intermediate = 3072;
};

// A vision transformer over square images: patches, class token and positions; encoder norm; head.
struct VisionShape {
  TransformerShape transformer;
  int image = 224;
  int patch = 16;
  int classes = 1000;

  int positions() const { return (image / patch) * (image / patch) + 1; }
};
VisionShape vit_b16(int classes);
std::vector<ParameterUnit> list_vision_units(const VisionShape& shape);

// BERT for text classification (pooler, head with `labels` outputs) or question answering (a head
// with two outputs). The defaults are the shape of BERT-base.
enum class BertTask : std::uint8_t { kClassification, kQuestionAnswering };
struct BertShape {
  TransformerShape transformer;
  int vocabulary = 30522;
  int positions = 512;
  int token_types = 2;
  int labels = 2;
};
BertShape bert_large();
std::vector<ParameterUnit> list_bert_units(const BertShape& shape, BertTask task);

}  // namespace frazil
