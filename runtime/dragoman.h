/* dragoman: offline neural translation in one fixed arena. The C API.
 *
 *   dragoman_model* model;
 *   dragoman_translator* translator;
 *   dragoman_plan plan;
 *   dragoman_error error;
 *   if (dragoman_open("en-de.dgm", 0, &model, &error) ||
 *       dragoman_make_plan(model, NULL, &plan, &error) ||
 *       dragoman_start(model, &plan, NULL, NULL, &translator, &error)) { fputs(error.text, stderr); ... }
 *   char* out = malloc(plan.output_bytes);
 *   dragoman_result result;
 *   dragoman_translate(translator, "Good morning.", 13, NULL, out, plan.output_bytes, &result);
 *
 * Ownership: what you open you close, what you start you stop; stop every translator before closing its model, and
 * each once, as with free(). Closing or stopping NULL does nothing. Everything else you pass in stays yours: paths,
 * names, limits, plans and options are not kept after the call; a model in memory and a translator's memory are used
 * until closed and stopped. Text is UTF-8 with a length and need not end in a zero byte; output always does.
 *
 * Threads: a model never changes and may be shared by any number of translators in any threads. A translator belongs to
 * one thread at a time. There is nothing global to set up, to share or to free. After fork() a child may use
 * translators of one thread; those of several have left their threads behind.
 *
 * Callbacks run inside the call, on the calling thread, with the float environment of the kernels (subnormals flushed
 * to zero). They must return: no exception or longjmp may leave them. They may use other translators, not this one.
 *
 * Memory: after dragoman_start nothing is allocated. The model file must not be changed in place while open; replace it
 * by renaming a new one over it.
 *
 * Errors: functions that can fail return 0 on success, else 1 and one sentence in error->text (error may be NULL).
 * After a failure *model or *translator is NULL. NULL where something is needed is such a failure, not a crash. */
#ifndef DRAGOMAN_H
#define DRAGOMAN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DRAGOMAN_API __attribute__((visibility("default")))
#else
#define DRAGOMAN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dragoman_model dragoman_model;
typedef struct dragoman_translator dragoman_translator;

typedef struct dragoman_error {
  char text[480];
} dragoman_error;

/* "0.1.0" */
DRAGOMAN_API const char* dragoman_version(void);

/* The binary interface: structs, values and signatures of this file. Before 1.0 any change to one of them raises the
 * number, even a field at a struct's end; it is also the number behind libdragoman.so. dragoman_error and the functions
 * from here to dragoman_open_memory never change. Zero what you pass in (dragoman_options options = {0}): a field that
 * is new when you compile again then means what was before.
 *
 * A program compiled with one number and run with a library of another is told so by dragoman_open. Who calls without
 * this header (dlopen, Python's ctypes) compares dragoman_abi_version() with the number its structs were written for.
 */
#define DRAGOMAN_ABI_VERSION 1
DRAGOMAN_API uint32_t dragoman_abi_version(void);

/* Maps the file (or, with preload, reads it once into private memory, in huge pages where there are any: for cards that
 * may fail while in use, and a little faster). */
DRAGOMAN_API int dragoman_open(const char* path, int preload, dragoman_model** model, dragoman_error* error);
/* A model that already lies in memory or flash, at a multiple of 64 bytes; it must stay there unchanged. */
DRAGOMAN_API int dragoman_open_memory(const void* data, size_t bytes, dragoman_model** model, dragoman_error* error);

/* The same for a caller of the given ABI; the macros below call these in place of the two above. */
DRAGOMAN_API int dragoman_open_abi(uint32_t abi, const char* path, int preload, dragoman_model** model,
                                   dragoman_error* error);
DRAGOMAN_API int dragoman_open_memory_abi(uint32_t abi, const void* data, size_t bytes, dragoman_model** model,
                                          dragoman_error* error);
#define dragoman_open(...) dragoman_open_abi(DRAGOMAN_ABI_VERSION, __VA_ARGS__)
#define dragoman_open_memory(...) dragoman_open_memory_abi(DRAGOMAN_ABI_VERSION, __VA_ARGS__)

DRAGOMAN_API void dragoman_close(dragoman_model* model);

/* Checks every tensor's checksum and replays the stored self-test with the named kernels (NULL: the best). */
DRAGOMAN_API int dragoman_verify(const dragoman_model* model, const char* isa, dragoman_error* error);

/* Target languages of a multilingual model, for dragoman_options.target_language. name is "deu" or ">>deu<<". The error
 * lists what the model has. */
DRAGOMAN_API int dragoman_find_language(const dragoman_model* model, const char* name, uint32_t* language,
                                        dragoman_error* error);
/* All of them, one after the other: begin with 0; 0 comes back after the last, and at once where the model has none.
 * The name ("deu", without a final zero) lives as long as the model. */
DRAGOMAN_API uint32_t dragoman_next_language(const dragoman_model* model, uint32_t after, const char** name,
                                             size_t* bytes);

/* Zero anywhere means "choose for me". */
typedef struct dragoman_limits {
  uint32_t slots;     /* sentences decoded side by side (1) */
  uint32_t source;    /* longest source in ids, end of sentence included (256); longer text is translated in parts */
  uint32_t target;    /* longest target in ids (2 * source + 10) */
  uint32_t positions; /* K/V positions in flight, all slots together */
  uint32_t threads;   /* (1) */
} dragoman_limits;

typedef struct dragoman_plan {
  dragoman_limits limits; /* what was chosen */
  size_t bytes;           /* memory of a translator, exactly: a multiple of 64 */
  size_t output_bytes;    /* the longest output of one part, final zero included */
  size_t window_bytes;    /* see dragoman_input.complete */
} dragoman_plan;

/* limits may be NULL: choose all of them. */
DRAGOMAN_API int dragoman_make_plan(const dragoman_model* model, const dragoman_limits* limits, dragoman_plan* plan,
                                    dragoman_error* error);

/* isa: NULL for the best kernels this CPU runs, or a name such as "avx2" or "portable".
 * memory: plan->bytes at a multiple of 64 bytes, yours until dragoman_stop; or NULL to let the library map it. */
DRAGOMAN_API int dragoman_start(const dragoman_model* model, const dragoman_plan* plan, const char* isa, void* memory,
                                dragoman_translator** translator, dragoman_error* error);
DRAGOMAN_API void dragoman_stop(dragoman_translator* translator);

/* What happened to a text, as bits; 0 is ok. */
enum {
  DRAGOMAN_LENGTH_CAP = 1,    /* stopped at the length cap: min(2n + 10, limits.target) ids for a source of n */
  DRAGOMAN_LOOP = 2,          /* a cycle of up to 8 ids came four times in a row */
  DRAGOMAN_LOOP_CUT = 4,      /* ... and was cut, as asked */
  DRAGOMAN_SPLIT = 8,         /* the source was longer than the limit and was translated in parts */
  DRAGOMAN_UNKNOWN = 16,      /* characters the vocabulary does not know */
  DRAGOMAN_INVALID_UTF8 = 32, /* bytes that are not UTF-8 were read as U+FFFD */
  DRAGOMAN_STOPPED = 64,      /* the token callback asked to stop */
  DRAGOMAN_NUMERIC = 128,     /* no finite score: the weights are damaged */
  DRAGOMAN_TRUNCATED = 256    /* the output buffer was too small: result.bytes says what it takes */
};

typedef struct dragoman_options {
  int cut_loops;
  int scores; /* fill in score: costs a pass over the output layer's scores */
  /* Called for every id as it comes; return 0 to stop that part. part counts from 0 in each call. May be NULL. */
  int (*token)(void* user, uint64_t part, int32_t id);
  void* token_user;
  /* From dragoman_find_language; 0: none. It is the first source id of every text, of each part where a text is long. A
   * text that begins with a language of its own, ">>deu<< Good morning.", keeps that one. */
  uint32_t target_language;
} dragoman_options;

typedef struct dragoman_result {
  size_t bytes; /* length of the whole translation, without the final zero */
  uint32_t flags;
  size_t source_ids, target_ids; /* end of sentence included */
  double score;                  /* mean log-probability of the target ids, when asked for */
} dragoman_result;

/* One text of any length. A text of up to limits.source ids needs at most plan.output_bytes; a longer one is translated
 * in parts that are joined by a space, each at most that long. options and result may be NULL; so may text where bytes
 * is 0, and out where out_bytes is 0: then result.bytes alone says how long the translation is. out must not overlap
 * text. Translation itself cannot fail: 1 means NULL where something was needed, and then out is empty and *result
 * zero. */
DRAGOMAN_API int dragoman_translate(dragoman_translator* translator, const char* text, size_t bytes,
                                    const dragoman_options* options, char* out, size_t out_bytes,
                                    dragoman_result* result);

/* Many lines, decoded side by side in limits.slots slots; a slot takes the next line as soon as it is free. */
typedef struct dragoman_input {
  const char* text; /* the rest of the current line, or as much of it as there is */
  size_t bytes;
  int complete; /* the line ends here; otherwise at least plan.window_bytes must be shown */
} dragoman_input;

typedef struct dragoman_output {
  const char* text; /* one part of a line, valid during the call, ends in a zero byte; most lines are one part */
  size_t bytes;
  const int32_t* ids; /* end of sentence included, unless it was never produced */
  size_t id_count;
  size_t source_ids;
  uint32_t flags;
  uint64_t part;
  int line_end; /* the last part of its line */
  double score; /* sum of log-probabilities, when asked for */
} dragoman_output;

typedef struct dragoman_lines {
  int (*peek)(void* user, dragoman_input* input);          /* shows the current line; 0: none now */
  void (*take)(void* user, size_t bytes);                  /* so much of it was used; all of it ends the line */
  void (*part)(void* user, const dragoman_output* output); /* called in the order of the input */
  void* user;
} dragoman_lines;

/* Returns when peek has nothing more to show and everything was delivered; 1 for NULL where something is needed (all of
 * the three callbacks are), and then none of them was called. */
DRAGOMAN_API int dragoman_translate_lines(dragoman_translator* translator, const dragoman_lines* lines,
                                          const dragoman_options* options);

/* The name of the kernels in use, e.g. "avx2"; "" for NULL. It needs no freeing. */
DRAGOMAN_API const char* dragoman_isa(const dragoman_translator* translator);

#ifdef __cplusplus
}
#endif

#endif
