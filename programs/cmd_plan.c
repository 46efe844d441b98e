/* SPDX-License-Identifier: Apache-2.0 */
/* unicon plan X Y */
#include "inputs.h"

static void print_side(char side, const unicon_rows *rows, double reads) {
  printf("%c                %lld rows of %lld numbers, read %.0f times\n", side,
         (long long)unicon_rows_count(rows), (long long)unicon_rows_width(rows), reads);
}

static int print_plan(const inputs *in, const unicon_result *plan) {
  char time[32], memory[32];
  print_side('x', in->x, display_number(plan, "", "reads_x"));
  print_side('y', in->y, display_number(plan, "", "reads_y"));
  printf("sweeps           %.0f over all pairs of rows\n",
         display_number(plan, "", "plane_sweeps"));
  printf("memory           about %s, beside the mapped files and 64 MB for BLAS and code\n",
         display_bytes(display_number(plan, "", "memory"), memory, sizeof memory));
  printf("time             about %s (%.3g billion operations)\n",
         display_time(display_number(plan, "", "seconds"), time, sizeof time),
         display_number(plan, "", "flops") / 1e9);
  printf("advice           %s\n", unicon_result_text(plan, "advice"));
  return EXIT_DONE;
}

int cmd_plan(tool *t) {
  inputs in = {0};
  unicon_result *plan = NULL;
  int code = inputs_check_options(t);
  if (code == EXIT_DONE)
    code = inputs_open(t, t->args->positional[0], t->args->positional[1], INPUTS_MAIN, &in);
  if (code == EXIT_DONE) {
    const unicon_data data = UNICON_DATA(.x = in.x, .y = in.y, .pairs = in.pairs);
    const unicon_status status = unicon_plan(t->ctx, &data, t->options, &plan);
    if (status != UNICON_OK)
      code = tool_fail(t, status);
    else if (!tool_has(t, CLI_OPT_JSON))
      code = print_plan(&in, plan);
    else if (!display_json(display_json_result(plan)))
      code = tool_out_of_memory(t);
  }
  unicon_result_destroy(plan);
  inputs_close(&in);
  return code;
}
