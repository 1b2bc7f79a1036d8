// SPDX-License-Identifier: Apache-2.0
#include "data/text/read_text.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "data/arrays/array_dataset.h"
#include "data/text/sequences.h"
#include "data/text/token_reader.h"

namespace onward {
namespace {

constexpr uint64_t kScanPiece = uint64_t{1} << 20;
constexpr uint64_t kWindowPiece = uint64_t{1} << 13;

// Calls work(i) for all i, on several threads, and returns the first error in their order.
absl::Status ForEach(int64_t count, absl::FunctionRef<absl::Status(int64_t)> work) {
  std::vector<absl::Status> results(static_cast<size_t>(count));
  ParallelFor(count, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) results[i] = work(i);
  });
  for (const absl::Status& s : results) ONWARD_RETURN_IF_ERROR(s);
  return absl::OkStatus();
}

struct Corpus {
  StoredBytes file;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Preparation> preparation;
  TrainingHints hints;
  int64_t length() const { return preparation->text->length; }
};

// Windows of tokens: x is `length` of them, y each one's successor.
class WindowDataset : public Dataset {
 public:
  WindowDataset(Corpus corpus, std::vector<TokenPlace> begins)
      : corpus_(std::move(corpus)), begins_(std::move(begins)) {}

  int64_t size() const override { return static_cast<int64_t>(begins_.size()); }
  std::vector<FieldInfo> fields() const override {
    return {{"x", DType::kInt64, {corpus_.length()}, false},
            {"y", DType::kInt64, {corpus_.length()}, true}};
  }
  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    const int64_t count = static_cast<int64_t>(indices.size()), length = corpus_.length();
    for (int64_t i : indices) {
      if (i < 0 || i >= size()) {
        return absl::OutOfRangeError(absl::StrCat("example ", i, " of a data set of ", size()));
      }
    }
    batch->resize(2);
    for (Tensor& t : *batch) {
      const Shape shape{count, length};
      if (t.dtype() != DType::kInt64 || t.shape() != shape) t = Tensor(DType::kInt64, shape);
    }
    int64_t* x = (*batch)[0].data<int64_t>();
    int64_t* y = (*batch)[1].data<int64_t>();
    return ForEach(count, [&](int64_t i) -> absl::Status {
      TokenReader reader(corpus_.file, *corpus_.tokenizer, begins_[indices[i]], kWindowPiece);
      int64_t token = 0;
      for (int64_t k = 0; k <= length; ++k) {
        ONWARD_ASSIGN_OR_RETURN(const bool more, reader.Next(&token));
        if (!more) {
          return absl::DataLossError(absl::StrCat(corpus_.file.name(), ": was changed meanwhile"));
        }
        if (k < length) x[i * length + k] = token;
        if (k > 0) y[i * length + k - 1] = token;
      }
      return absl::OkStatus();
    });
  }
  bool reads_slowly() const override { return true; }
  TrainingHints hints() const override { return corpus_.hints; }
  int64_t classes() const override { return corpus_.tokenizer->size(); }
  std::vector<std::string> class_names() const override { return {}; }
  std::string source() const override { return corpus_.file.name(); }
  std::string place(int64_t example) const override {
    return absl::StrCat("the text from byte ", begins_[example].byte, " of ", source());
  }
  const Preparation* preparation() const override { return corpus_.preparation.get(); }

 private:
  Corpus corpus_;
  std::vector<TokenPlace> begins_;
};

// Where windows begin, `stride` tokens apart.
absl::StatusOr<std::vector<TokenPlace>> FindWindows(const Corpus& corpus, int64_t stride) {
  TokenReader reader(corpus.file, *corpus.tokenizer, {}, kScanPiece);
  std::vector<TokenPlace> begins;
  int64_t count = 0, token = 0;
  while (true) {
    if (count % stride == 0) {
      ONWARD_ASSIGN_OR_RETURN(begins.emplace_back(), reader.place());
    }
    ONWARD_ASSIGN_OR_RETURN(const bool more, reader.Next(&token));
    if (!more) break;
    ++count;
  }
  // Every window has one token behind it.
  const int64_t windows = count <= corpus.length() ? 0 : (count - corpus.length() - 1) / stride + 1;
  if (windows == 0) {
    return absl::InvalidArgumentError(absl::StrCat(corpus.file.name(), ": holds ", count,
                                                   " tokens, fewer than the ", corpus.length() + 1,
                                                   " that length=", corpus.length(), " needs"));
  }
  begins.resize(static_cast<size_t>(windows));
  return begins;
}

// Where lines that are not empty begin, and the end of the last one.
absl::StatusOr<std::vector<uint64_t>> FindLines(const StoredBytes& file) {
  std::vector<uint64_t> begins;
  std::string piece;
  bool at_start = true;
  for (uint64_t at = 0; at < file.size(); at += kScanPiece) {
    piece.resize(static_cast<size_t>(std::min(kScanPiece, file.size() - at)));
    ONWARD_RETURN_IF_ERROR(file.Read(at, piece.size(), piece.data()));
    for (size_t i = 0; i < piece.size(); ++i) {
      const bool ends = piece[i] == '\n' || piece[i] == '\r';
      if (at_start && !ends) begins.push_back(at + i);
      at_start = ends;
    }
  }
  if (begins.empty()) return absl::InvalidArgumentError(absl::StrCat(file.name(), ": is empty"));
  begins.push_back(file.size());
  return begins;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenLines(const Corpus& corpus,
                                                   const DataOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<uint64_t> begins, FindLines(corpus.file));
  ONWARD_ASSIGN_OR_RETURN(
      const std::vector<int64_t> rows,
      ChooseRows(static_cast<int64_t>(begins.size()) - 1, options, corpus.file.name()));
  Sequences s;
  s.source = corpus.file.name();
  s.preparation = corpus.preparation;
  s.hints = corpus.hints;
  s.count = static_cast<int64_t>(rows.size());
  s.pad = std::max<int64_t>(0, corpus.tokenizer->Find(kPadToken));
  // One more than the longest example, for its last label.
  const size_t most = static_cast<size_t>(corpus.length()) + 1;
  s.tokens = [corpus, begins, rows, most](int64_t i) -> absl::StatusOr<std::vector<int64_t>> {
    const uint64_t begin = begins[rows[i]], end = begins[rows[i] + 1];
    std::string line(static_cast<size_t>(end - begin), '\0');
    ONWARD_RETURN_IF_ERROR(corpus.file.Read(begin, line.size(), line.data()));
    line.resize(std::min(line.find_first_of("\r\n"), line.size()));
    auto tokens = corpus.tokenizer->All(line);
    if (!tokens.ok()) {
      return Annotate(tokens.status(), absl::StrCat(corpus.file.name(), ": line at byte ", begin));
    }
    tokens->resize(std::min(tokens->size(), most));
    return tokens;
  };
  s.place = [name = corpus.file.name(), begins, rows](int64_t i) {
    return absl::StrCat("the line at byte ", begins[rows[i]], " of ", name);
  };
  // Characters that a model does not know are met here, and not in the middle of a run.
  if (corpus.preparation->text->tokens == TokenKind::kCharacters) {
    for (int64_t i = 0; i < s.count; ++i) ONWARD_RETURN_IF_ERROR(s.tokens(i).status());
  }
  return NextTokens(std::move(s), corpus.tokenizer->size());
}

// What a spec says otherwise than the model, whose tokens have their numbers already.
absl::StatusOr<TextPreparation> KnownText(TextPreparation text, const TextOptions& o) {
  bool differs = o.tokens && *o.tokens != text.tokens;
  if (!differs && !o.vocabulary.empty()) {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> vocabulary,
                            ReadVocabulary(o.vocabulary));
    differs = vocabulary != text.vocabulary;
  }
  if (differs) {
    return absl::InvalidArgumentError(
        "the model was trained on other tokens, and its file keeps them: leave tokens= and vocab= "
        "out");
  }
  if (o.length) text.length = *o.length;
  return text;
}

}  // namespace

absl::StatusOr<TextPreparation> PrepareText(const DataOptions& options, const DataContext& context,
                                            const StoredBytes* file) {
  const TextOptions& o = options.text;
  if (options.scales() || options.pictures.prepares() || options.shape || options.channels_last) {
    return absl::InvalidArgumentError(
        "text has neither scale, mean and std nor shape, layout, size and augment: its tokens are "
        "numbers that stand for themselves");
  }
  if (context.preparation != nullptr && context.preparation->text) {
    return KnownText(*context.preparation->text, o);
  }
  TextPreparation text;
  text.length = o.length.value_or(kUsualLength);
  text.tokens =
      o.tokens.value_or(o.vocabulary.empty() ? TokenKind::kBytes : TokenKind::kWordPieces);
  if ((text.tokens == TokenKind::kWordPieces) == o.vocabulary.empty()) {
    return absl::InvalidArgumentError(
        "tokens=wordpiece and vocab=FILE go together: the file has one token per line");
  }
  if (text.tokens == TokenKind::kWordPieces) {
    ONWARD_ASSIGN_OR_RETURN(text.vocabulary, ReadVocabulary(o.vocabulary));
    text.lower_case = IsLowerCase(text.vocabulary);
  } else if (text.tokens == TokenKind::kCharacters) {
    if (file == nullptr) {
      return absl::InvalidArgumentError(
          "tokens=chars is for text files; the text of a table is cut by bytes or wordpiece");
    }
    ONWARD_ASSIGN_OR_RETURN(text.vocabulary, CharactersOf(*file));
  }
  return text;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenTextFile(const std::string& path,
                                                      const DataOptions& options,
                                                      const DataContext& context) {
  Corpus corpus;
  corpus.hints = options.hints;
  ONWARD_ASSIGN_OR_RETURN(corpus.file, StoredBytes::OpenPlainOrGzip(path));
  if (corpus.file.size() == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
  Preparation preparation;
  ONWARD_ASSIGN_OR_RETURN(preparation.text, PrepareText(options, context, &corpus.file));
  corpus.preparation = std::make_shared<const Preparation>(std::move(preparation));
  auto tokenizer = Tokenizer::Create(*corpus.preparation->text);
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), path);
  corpus.tokenizer = *std::move(tokenizer);
  if (options.text.lines) return OpenLines(corpus, options);
  const int64_t stride = options.text.stride.value_or(corpus.length());
  ONWARD_ASSIGN_OR_RETURN(const std::vector<TokenPlace> windows, FindWindows(corpus, stride));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                          ChooseRows(static_cast<int64_t>(windows.size()), options, path));
  std::vector<TokenPlace> begins;
  for (int64_t row : rows) begins.push_back(windows[row]);
  return std::make_unique<WindowDataset>(std::move(corpus), std::move(begins));
}

}  // namespace onward
