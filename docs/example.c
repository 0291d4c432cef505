/* Translates one sentence inside memory of the caller's. Usage: example MODEL.dgm TEXT
 *   cc -std=c11 example.c $(pkg-config --cflags --libs dragoman) -o example */
#include <dragoman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  dragoman_model* model = NULL;
  dragoman_translator* translator = NULL;
  dragoman_plan plan;
  dragoman_error error;
  if (argc != 3) return fprintf(stderr, "usage: %s MODEL.dgm TEXT\n", argv[0]), 2;

  /* How much memory will it take? Known before anything runs. */
  const dragoman_limits limits = {.slots = 1, .source = 64};
  if (dragoman_open(argv[1], 0, &model, &error) || dragoman_make_plan(model, &limits, &plan, &error)) {
    return fprintf(stderr, "%s\n", error.text), 1;
  }
  fprintf(stderr, "%zu bytes, and not one more\n", plan.bytes);

  void* arena = aligned_alloc(64, plan.bytes);
  char* out = malloc(plan.output_bytes);
  if (!arena || !out) return fprintf(stderr, "out of memory\n"), 1;
  if (dragoman_start(model, &plan, NULL, arena, &translator, &error)) {
    return fprintf(stderr, "%s\n", error.text), 1;
  }

  dragoman_result result;
  dragoman_translate(translator, argv[2], strlen(argv[2]), NULL, out, plan.output_bytes, &result);
  puts(out);
  if (result.flags & DRAGOMAN_UNKNOWN) fprintf(stderr, "(some characters are unknown to the model)\n");

  dragoman_stop(translator);
  dragoman_close(model);
  free(out);
  free(arena);
  return 0;
}
