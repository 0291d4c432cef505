#include "runtime/command/locate.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/command/text_out.h"
#include "runtime/mapped_file.h"

namespace dragoman::command {
namespace {

struct Path {
  char text[PATH_MAX] = "";
};

// The .dgm files of a folder: the first by name, how many, and their names for a sentence.
struct Found {
  char first[NAME_MAX + 1] = "";
  size_t count = 0;
  char list[300] = "";
};

// A name that is not the user's own, fit for a terminal.
void make_printable(char* text) {
  for (; *text; ++text) {
    if (static_cast<unsigned char>(*text) < ' ' || *text == 0x7F) *text = '?';
  }
}

void note(Found& found, const char* name) {
  if (found.count == 0 || std::strcmp(name, found.first) < 0) {
    std::snprintf(found.first, sizeof found.first, "%s", name);
  }
  const size_t used = std::strlen(found.list);
  std::snprintf(found.list + used, sizeof found.list - used, "%s%s", found.count ? ", " : "", name);
  ++found.count;
}

Found find_models(const char* folder) {
  Found found;
  DIR* directory = opendir(folder);
  if (!directory) return found;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.size() > 4 && name.substr(name.size() - 4) == ".dgm" && name[0] != '.') note(found, entry->d_name);
  }
  closedir(directory);
  make_printable(found.list);
  return found;
}

// Cuts "/a/b/c" to "/a/b"; false when there is nothing to cut.
bool to_parent(Path& path) {
  char* slash = std::strrchr(path.text, '/');
  if (!slash) return false;
  *(slash == path.text ? slash + 1 : slash) = 0;
  return true;
}

bool executable_folder(Path& path) {
  const ssize_t length = readlink("/proc/self/exe", path.text, sizeof path.text - 1);
  if (length <= 0) return false;
  path.text[length] = 0;
  return to_parent(path);
}

enum class Search { kNone, kOne, kError };

// Looks in one folder; the path of its only model, or what is wrong with there being several.
Search search(const char* folder, Path& path, Error& error) {
  const Found found = find_models(folder);
  if (found.count == 0) return Search::kNone;
  if (found.count > 1) {
    error = fail("%s holds %zu models: choose one with -m (%s)", folder, found.count, found.list);
    return Search::kError;
  }
  const int length = std::snprintf(path.text, sizeof path.text, "%s/%s", folder, found.first);
  return length > 0 && static_cast<size_t>(length) < sizeof path.text ? Search::kOne : Search::kNone;
}

}  // namespace

Result<const char*> locate_model(const Settings& settings, const char* word) {
  if (settings.model && word) return fail("the model is given twice, as '%s' and as '%s'", settings.model, word);
  if (settings.model) return settings.model;
  if (word) return word;
  const char* variable = std::getenv("DRAGOMAN_MODEL");
  if (variable && *variable) return static_cast<const char*>(variable);

  static Path path;  // outlives the call
  static Path beside, share;
  Error error;
  if (executable_folder(beside)) {
    share = beside;
    if (to_parent(share)) {
      const size_t length = std::strlen(share.text);
      std::snprintf(share.text + length, sizeof share.text - length, "%sshare/dragoman",
                    share.text[length - 1] == '/' ? "" : "/");
    }
    for (const Path* folder : {&beside, &share}) {
      const Search result = search(folder->text, path, error);
      if (result == Search::kError) return error;
      if (result == Search::kOne) return static_cast<const char*>(path.text);
    }
  }
  return fail(
      "no model: give one with -m FILE or in DRAGOMAN_MODEL (there is no .dgm in %s or %s; dragoman-convert "
      "makes one from a checkpoint)",
      beside.text, share.text);
}

Result<KernelSelection> select_kernels(const Settings& settings) {
  const char* variable = std::getenv("DRAGOMAN_ISA");
  if (variable && *variable == 0) variable = nullptr;
  const char* name = settings.isa ? settings.isa : variable;
  if (!name) return KernelSelection{available_kernels().front(), "the best this machine runs"};
  const char* why = settings.isa ? "asked for with --isa" : "asked for in DRAGOMAN_ISA";
  if (const Kernels* kernels = find_kernels(name)) return KernelSelection{kernels, why};

  char list[200] = "";
  for (const Kernels* kernels : available_kernels()) {
    const size_t used = std::strlen(list);
    std::snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", kernels->name);
  }
  for (const KernelChoice& choice : all_kernels()) {
    if (std::strcmp(choice.name, name) == 0) {
      return fail("the kernels '%s' need %s, which this machine lacks; it runs: %s", name, choice.needs, list);
    }
  }
  return fail("there are no kernels called '%s' in this build (%s); this machine runs: %s", name, why, list);
}

const Model* open_located_model(const Settings& settings) {
  static Model model;
  const Result<const char*> path = locate_model(settings);
  if (!path) {
    say("%s", path.error().text);
    return nullptr;
  }
  const Result<MappedFile> file = map_file(*path, settings.preload);
  if (!file) {
    say("%s", file.error().text);
    return nullptr;
  }
  const Status opened = open_model(file->bytes, *path, model);
  if (!opened) {
    say("%s", opened.error().text);
    return nullptr;
  }
  return &model;
}

}  // namespace dragoman::command
