#include "runtime/command/help.h"

#include <cstring>

namespace dragoman::command {
namespace {

constexpr char kProgram[] =
    R"(dragoman: offline neural translation in one fixed arena

usage: dragoman COMMAND [OPTION...] [ARGUMENT...]

  translate   translate TEXT, or standard input line by line
  tokenize    text to ids or pieces, and back
  inspect     what is in a model file, and the memory it needs, to the byte
  verify      check a model file and replay its self-test on this CPU
  cpu         the instruction sets this build can use here
  help        this text, or `dragoman help COMMAND`

  --version   the program's version and the model format it reads

examples
  dragoman translate -m en-de.dgm "A man is riding a bicycle."
  dragoman translate -m en-de.dgm --threads 4 < book.en > book.de
  dragoman inspect en-de.dgm --batch 1

environment
  DRAGOMAN_MODEL   the model file, when there is no -m
  DRAGOMAN_ISA     the kernels, when there is no --isa (see `dragoman cpu`)

exit codes
  0   all is well
  1   a file, memory, input or output failed; also, without a word, when nobody reads the output any more
  2   the command line asks for something that is not there
  3   verify found a difference, or some lines of input were not lists of ids
)";

constexpr char kTranslateText[] =
    R"(usage: dragoman translate [-m FILE] [OPTION...] [TEXT...]

Translates each TEXT, or standard input line by line when there is none. One line in, one line out, in order;
an empty line stays empty. When the input pauses, everything read so far is translated and written: the command
works as a co-process. Input may be anything, also what is not UTF-8; a line of any length is translated in parts
that fit the model, in constant memory. Lines end with a newline or a carriage return and a newline; the last one need
not. A byte order mark that begins standard input is dropped.

  -m, --model FILE   the model. Without it: $DRAGOMAN_MODEL, then the only .dgm file beside this program, then the
                     only one in <prefix>/share/dragoman
  --target-language NAME
                     for models with several target languages (`dragoman inspect` lists them): deu, say. It stands
                     before every line, unless the line begins with one of its own, such as >>fra<<
  -t, --threads N    threads (1). The translation is the same for any number
  -b, --batch N      sentences side by side (1 for one TEXT, else 16): faster for many lines, more memory.
                     The translation is the same for any number
  --max-length N     longest translation of a part in ids (twice the source + 10, within the model's positions)
  --max-source N     longest source of a part in ids (256, within the model's positions)
  --isa NAME         kernels to use (see `dragoman cpu`). The translation is the same with all of them
  --cut-loops        where the model repeats itself, cut at the first time around
  --json             one object a line:
                       text           the translation
                       ids            its target ids, end of sentence included
                       status         ["ok"], or what happened: length_cap, loop, loop_cut, split, unknown,
                                      invalid_utf8, stopped, numeric, bad_ids
                       source_tokens, target_tokens
                       ms             time from reading to the last id, its parts added up
                       score          with --scores: mean log-probability of the ids, null for an empty line
                     Where a line is so long that its ids take more than 64 KB, they are null; the text is whole.
                     (With --ids it is the text that is null.)
  --scores           without --json: text, a tab, the mean log-probability of its ids (nothing for an empty line)
  --ids              source ids in, target ids out: decimal numbers and spaces. A word that is no id is reported, and
                     its line stays empty (exit code 3)
  --preload          read the file into memory first: for cards that fail while in use; with huge pages, where the
                     system has them, which makes large models a little faster
  --progress         lines and tokens a second, where standard error is a terminal
  -q, --quiet        no summary of what happened at the end
  --                 what follows is TEXT, even if it starts with '-'

examples
  dragoman translate "Good morning." "How are you?"
  dragoman translate --json --scores < in.txt | jq -r 'select(.score < -1).text'
  dragoman tokenize "Good morning." | dragoman translate --ids | dragoman tokenize --decode --target
)";

constexpr char kTokenizeText[] =
    R"(usage: dragoman tokenize [-m FILE] [--pieces | --decode] [--target] [TEXT...]

Text to ids, line by line, as the model sees it (without the end of sentence, which translate adds). TEXT, or
standard input. Lines of more than about 16 KB are tokenised in parts.

  -m, --model FILE   the model (see `dragoman help translate` for where it is looked for)
  --pieces           pieces, as they stand in the vocabulary, instead of ids
  --decode           ids to text. A word that is no id is reported, and its line stays empty (exit code 3)
  --target           the vocabulary of the target language
  --preload          read the file into memory first
  -q, --quiet        do not report lines that were cut

examples
  dragoman tokenize --pieces "unbelievable"
  dragoman tokenize < in.txt | dragoman tokenize --decode
)";

constexpr char kInspectText[] =
    R"(usage: dragoman inspect FILE [OPTION...]

What is in a model file: architecture, tokenizer, numbers, where it comes from and its licence, every section with its
size; then the plan: the memory translate needs with these limits, the last line being the arena's exact bytes.

  -b, --batch N      sentences side by side (16)
  --max-length N     longest translation of a part in ids
  --max-source N     longest source of a part in ids (256)
  -t, --threads N    threads (1)
  --licence          only the licence, all of it
  -m, --model FILE   the same as FILE

examples
  dragoman inspect en-de.dgm
  dragoman inspect en-de.dgm --batch 1 --max-source 64 | tail -1
)";

constexpr char kVerifyText[] =
    R"(usage: dragoman verify FILE [--isa NAME | --all-isas]

Checks the file's structure, every tensor's checksum, and translates the sentences stored in the file: ids and logits
must have the very bits the converter recorded. One line a check; exit code 3 if one failed.

  --isa NAME         kernels to replay with (default: the best; see `dragoman cpu`)
  --all-isas         replay with each that this machine runs
  --preload          read the file into memory first
  -m, --model FILE   the same as FILE

example
  dragoman verify en-de.dgm --all-isas
)";

constexpr char kCpuText[] =
    R"(usage: dragoman cpu [--isa NAME]

The kernels compiled into this program, whether this machine runs them, and which one translate would choose and why.
All give the same bits; they differ in speed.

  --isa NAME         as if translate were given it; DRAGOMAN_ISA counts as well
)";

}  // namespace

const char* help_text(const char* command) {
  static constexpr struct {
    const char* name;
    const char* text;
  } kTexts[] = {{"translate", kTranslateText},
                {"tokenize", kTokenizeText},
                {"inspect", kInspectText},
                {"verify", kVerifyText},
                {"cpu", kCpuText}};
  for (const auto& entry : kTexts) {
    if (std::strcmp(entry.name, command) == 0) return entry.text;
  }
  return kProgram;
}

}  // namespace dragoman::command
