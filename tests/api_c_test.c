/* The C API from C: what dragoman.h promises about NULL, errors, ownership and growth. Usage: api-c-test MODEL.dgm */
#include <dragoman.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: this is false: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                    \
    }                                                                                \
  } while (0)

/* The structs of ABI 1 where pointers have 8 bytes. Does one of these fail? Then a struct has changed: raise
 * DRAGOMAN_ABI_VERSION if a version with the old one was released, and write the new size here. */
#if UINTPTR_MAX > 0xFFFFFFFFu
_Static_assert(DRAGOMAN_ABI_VERSION == 1, "the sizes below are those of ABI 1");
_Static_assert(sizeof(dragoman_error) == 480, "dragoman_error never changes");
_Static_assert(sizeof(dragoman_limits) == 20, "a struct of the ABI has changed");
_Static_assert(sizeof(dragoman_plan) == 48, "a struct of the ABI has changed");
_Static_assert(sizeof(dragoman_options) == 32, "a struct of the ABI has changed");
_Static_assert(sizeof(dragoman_result) == 40, "a struct of the ABI has changed");
_Static_assert(sizeof(dragoman_input) == 24, "a struct of the ABI has changed");
_Static_assert(sizeof(dragoman_output) == 72, "a struct of the ABI has changed");
_Static_assert(sizeof(dragoman_lines) == 32, "a struct of the ABI has changed");
#endif

static const char kText[] = "Good morning.";
static const size_t kTextBytes = sizeof kText - 1;

/* Sets *error to something that no sentence is, to see that one comes. */
static dragoman_error* fresh(dragoman_error* error) {
  strcpy(error->text, "#");
  return error;
}

static int said(const dragoman_error* error, const char* word) {
  return strstr(error->text, word) != NULL;
}

static void refuses_null(const dragoman_model* model, const dragoman_plan* plan) {
  dragoman_error error;
  dragoman_model* opened = (dragoman_model*)&error; /* not NULL: a failure must write it */
  dragoman_translator* started = (dragoman_translator*)&error;
  dragoman_plan other;
  CHECK(dragoman_open(NULL, 0, &opened, fresh(&error)) == 1 && !opened && said(&error, "no path"));
  CHECK(dragoman_open("x", 0, NULL, fresh(&error)) == 1 && said(&error, "NULL"));
  CHECK(dragoman_open_memory(NULL, 64, &opened, fresh(&error)) == 1 && !opened && said(&error, "no model"));
  CHECK(dragoman_open_memory(&error, 64, NULL, fresh(&error)) == 1 && said(&error, "NULL"));
  CHECK(dragoman_verify(NULL, NULL, fresh(&error)) == 1 && said(&error, "no model"));
  CHECK(dragoman_make_plan(NULL, NULL, &other, fresh(&error)) == 1 && said(&error, "no model"));
  CHECK(dragoman_make_plan(model, NULL, NULL, fresh(&error)) == 1 && said(&error, "no plan"));
  CHECK(dragoman_start(NULL, plan, NULL, NULL, &started, fresh(&error)) == 1 && !started && said(&error, "no model"));
  started = (dragoman_translator*)&error;
  CHECK(dragoman_start(model, NULL, NULL, NULL, &started, fresh(&error)) == 1 && !started && said(&error, "no plan"));
  CHECK(dragoman_start(model, plan, NULL, NULL, NULL, fresh(&error)) == 1 && said(&error, "NULL"));
  /* Whoever does not want the sentence need not have it. */
  CHECK(dragoman_open("/no/such/file.dgm", 0, &opened, NULL) == 1 && !opened);
  CHECK(dragoman_start(model, plan, "no-such-isa", NULL, &started, NULL) == 1 && !started);
  dragoman_close(NULL);
  dragoman_stop(NULL);
  CHECK(strcmp(dragoman_isa(NULL), "") == 0);
}

static void refuses_another_abi(const char* path) {
  dragoman_error error;
  dragoman_model* model = (dragoman_model*)&error;
  CHECK(dragoman_abi_version() == DRAGOMAN_ABI_VERSION);
  CHECK(dragoman_open_abi(DRAGOMAN_ABI_VERSION + 1, path, 0, &model, fresh(&error)) == 1 && !model);
  CHECK(said(&error, "ABI 2") && said(&error, "ABI 1") && said(&error, "compile it again"));
  model = (dragoman_model*)&error;
  CHECK(dragoman_open_memory_abi(0, &error, 64, &model, fresh(&error)) == 1 && !model && said(&error, "ABI 0"));
  /* The function behind the macro: what dlopen finds. */
  int (*open)(const char*, int, dragoman_model**, dragoman_error*) = dragoman_open;
  CHECK(open(path, 0, &model, &error) == 0);
  dragoman_close(model);
}

struct Callbacks {
  const char* text;
  size_t left, parts;
};

static int peek(void* user, dragoman_input* input) {
  const struct Callbacks* c = user;
  if (c->left == 0) return 0;
  *input = (dragoman_input){c->text, c->left, 1};
  return 1;
}

static void take(void* user, size_t bytes) {
  struct Callbacks* c = user;
  c->text += bytes;
  c->left -= bytes;
}

static void part(void* user, const dragoman_output* output) {
  struct Callbacks* c = user;
  c->parts += output->line_end ? 1 : 0;
}

static void translates(dragoman_translator* translator, const dragoman_plan* plan) {
  char* out = malloc(plan->output_bytes);
  dragoman_result result, again;
  if (!out) exit(1);
  CHECK(dragoman_translate(translator, kText, kTextBytes, NULL, out, plan->output_bytes, &result) == 0);
  CHECK(result.bytes > 0 && result.bytes == strlen(out) && result.target_ids > 0);

  /* Nothing but the length is asked for; or not even that. */
  CHECK(dragoman_translate(translator, kText, kTextBytes, NULL, NULL, 0, &again) == 0);
  CHECK(again.bytes == result.bytes && again.flags == (result.flags | DRAGOMAN_TRUNCATED));
  CHECK(dragoman_translate(translator, kText, kTextBytes, NULL, out, plan->output_bytes, NULL) == 0);
  CHECK(strlen(out) == result.bytes);

  /* An empty text, with and without a pointer. */
  CHECK(dragoman_translate(translator, NULL, 0, NULL, out, plan->output_bytes, &again) == 0);
  CHECK(again.bytes == 0 && out[0] == 0);

  /* NULL where something is needed: an empty output and a zero result, never what was there before. */
  strcpy(out, "old");
  memset(&again, 0xFF, sizeof again);
  CHECK(dragoman_translate(NULL, kText, kTextBytes, NULL, out, plan->output_bytes, &again) == 1);
  CHECK(out[0] == 0 && again.bytes == 0 && again.flags == 0 && again.target_ids == 0);
  strcpy(out, "old");
  CHECK(dragoman_translate(translator, NULL, 5, NULL, out, plan->output_bytes, NULL) == 1 && out[0] == 0);
  CHECK(dragoman_translate(translator, kText, kTextBytes, NULL, NULL, 5, NULL) == 1);

  struct Callbacks user = {kText, kTextBytes, 0};
  const dragoman_lines lines = {peek, take, part, &user}, no_peek = {NULL, take, part, &user},
                       no_take = {peek, NULL, part, &user}, no_part = {peek, take, NULL, &user};
  CHECK(dragoman_translate_lines(NULL, &lines, NULL) == 1);
  CHECK(dragoman_translate_lines(translator, NULL, NULL) == 1);
  CHECK(dragoman_translate_lines(translator, &no_peek, NULL) == 1);
  CHECK(dragoman_translate_lines(translator, &no_take, NULL) == 1);
  CHECK(dragoman_translate_lines(translator, &no_part, NULL) == 1);
  CHECK(user.left == kTextBytes && user.parts == 0);
  CHECK(dragoman_translate_lines(translator, &lines, NULL) == 0 && user.left == 0 && user.parts == 1);
  free(out);
}

int main(int argc, char** argv) {
  dragoman_model* model = NULL;
  dragoman_translator *first = NULL, *second = NULL;
  dragoman_plan plan;
  dragoman_error error;
  if (argc != 2) return 2;
  if (dragoman_open(argv[1], 0, &model, &error) || dragoman_make_plan(model, NULL, &plan, &error) ||
      dragoman_start(model, &plan, NULL, NULL, &first, &error) ||
      dragoman_start(model, &plan, "portable", NULL, &second, &error)) {
    return fprintf(stderr, "%s\n", error.text), 1;
  }
  CHECK(plan.bytes % 64 == 0); /* aligned_alloc wants it so */
  CHECK(strcmp(dragoman_isa(second), "portable") == 0);
  refuses_null(model, &plan);
  refuses_another_abi(argv[1]);
  translates(first, &plan);
  dragoman_stop(first); /* the other one does not mind */
  translates(second, &plan);
  dragoman_stop(second);
  dragoman_close(model);
  return failures ? 1 : 0;
}
