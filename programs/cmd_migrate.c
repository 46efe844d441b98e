/* SPDX-License-Identifier: Apache-2.0 */
/* unicon migrate OLD NEW -o DIR */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inputs.h"
#include "migrate_page.h"
#include "unicon/migrate.h"

enum { FILES = 3 };

/* What goes into the folder; to be freed. */
static const char *const file_name[FILES] = {"model.safetensors", "decision.json", "report.html"};

typedef struct outputs {
  char *path[FILES];
  bool made; /* the folder was not there */
} outputs;

static void outputs_free(outputs *out) {
  for (int f = 0; f < FILES; f++) free(out->path[f]);
}

/* Makes the folder, and the names inside it, which must be no inputs. */
static int outputs_make(tool *t, const char *folder, outputs *out) {
  out->made = mkdir(folder, 0777) == 0;
  if (!out->made && errno != EEXIST)
    return tool_error(t, "cannot make the folder %s: %s", folder, strerror(errno));
  int code = EXIT_DONE;
  for (int f = 0; f < FILES && code == EXIT_DONE; f++) {
    const size_t size = strlen(folder) + strlen(file_name[f]) + 2;
    out->path[f] = malloc(size);
    if (!out->path[f]) return tool_out_of_memory(t);
    snprintf(out->path[f], size, "%s/%s", folder, file_name[f]);
    code = inputs_check_output(t, out->path[f]);
  }
  return code;
}

/* ---- what is read ------------------------------------------------------------------------- */

typedef struct material {
  unicon_rows *old_rows, *new_rows, *queries_old, *queries_new;
  unicon_pairs *judgements;
} material;

static void material_close(material *m) {
  unicon_pairs_destroy(m->judgements);
  unicon_rows_close(m->queries_new);
  unicon_rows_close(m->queries_old);
  unicon_rows_close(m->new_rows);
  unicon_rows_close(m->old_rows);
}

static unicon_status open_rows(tool *t, const char *path, unicon_rows **out) {
  return path ? unicon_rows_open(t->ctx, path, out) : UNICON_OK;
}

static int material_open(tool *t, material *m) {
  const char *judgements = tool_value(t, CLI_OPT_JUDGEMENTS);
  unicon_status status = open_rows(t, t->args->positional[0], &m->old_rows);
  if (status == UNICON_OK) status = open_rows(t, t->args->positional[1], &m->new_rows);
  if (status == UNICON_OK)
    status = open_rows(t, tool_value(t, CLI_OPT_QUERIES_OLD), &m->queries_old);
  if (status == UNICON_OK)
    status = open_rows(t, tool_value(t, CLI_OPT_QUERIES_NEW), &m->queries_new);
  if (status == UNICON_OK && judgements)
    status = unicon_pairs_read(t->ctx, judgements, unicon_rows_count(m->queries_new),
                               unicon_rows_count(m->new_rows), &m->judgements);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

static int check_options(tool *t) {
  const cli_command *command = t->args->command;
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(command, "say which folder the model and the report go to: -o DIR");
  if (tool_has(t, CLI_OPT_QUERIES_OLD) && !tool_has(t, CLI_OPT_QUERIES_NEW))
    return cli_error(command, "--queries-old needs --queries-new as well");
  if (tool_has(t, CLI_OPT_JUDGEMENTS) && !tool_has(t, CLI_OPT_QUERIES_NEW))
    return cli_error(command, "--judgements needs --queries-new as well");
  return EXIT_DONE;
}

/* ---- what is said ------------------------------------------------------------------------- */

static double figure(const json_t *row, const char *name, const char *part) {
  return json_number_value(json_object_get(json_object_get(row, name), part));
}

static void print_row(const json_t *row, bool chosen) {
  printf("%c %-8s", chosen ? '*' : ' ', json_string_value(json_object_get(row, "way")));
  printf("  %.3f (%.3f-%.3f)  %.3f  %8lld  ", figure(row, "overlap@10", "value"),
         figure(row, "overlap@10", "low"), figure(row, "overlap@10", "high"),
         figure(row, "ndcg@10", "value"),
         (long long)json_integer_value(json_object_get(row, "items")));
  puts(json_string_value(json_object_get(row, "how")));
}

static void print_points(const json_t *list, const char *title, const char *x, const char *y) {
  size_t i;
  const json_t *point;
  if (json_array_size(list) < 2) return;
  printf("%s", title);
  json_array_foreach(list, i, point) {
    printf("%s %lld: %.3f", i ? "," : "", (long long)json_integer_value(json_object_get(point, x)),
           json_number_value(json_object_get(point, y)));
  }
  puts("");
}

static void print_result(const json_t *decision, const char *folder) {
  const char *verdict = json_string_value(json_object_get(decision, "verdict"));
  const json_t *ways = json_object_get(decision, "ways");
  puts("  way       overlap@10           ndcg@10     items  how");
  for (size_t i = 0; i < json_array_size(ways); i++) {
    const json_t *row = json_array_get(ways, i);
    print_row(row, strcmp(verdict, json_string_value(json_object_get(row, "way"))) == 0);
  }
  print_points(json_object_get(decision, "by_pairs"), "by pairs:", "pairs", "score");
  print_points(json_object_get(decision, "by_items"), "by items:", "items", "overlap@10");
  printf("verdict   %s\n%s\n", verdict, json_string_value(json_object_get(decision, "sentence")));
  printf("written   %s/model.safetensors, decision.json, report.html\n", folder);
  if (strcmp(verdict, "keep") == 0)
    printf("next      keep the old model; %s/model.safetensors (%s) is for comparison alone\n",
           folder, json_string_value(json_object_get(decision, "direction")));
  if (strcmp(verdict, "rewrite") == 0)
    printf("next      unicon rewrite %s/model.safetensors INDEX.npy -o NEW.npy\n", folder);
  if (strcmp(verdict, "bridge") == 0)
    printf("next      unicon embed %s/model.safetensors --into old QUERIES.npy -o mapped.npy\n",
           folder);
  if (strcmp(verdict, "shared") == 0)
    printf("next      unicon rewrite %s/model.safetensors INDEX.npy -o SHARED.npy\n", folder);
}

/* ---- the command -------------------------------------------------------------------------- */

static int write_all(tool *t, const unicon_migration *made, const outputs *out) {
  char *html = NULL;
  size_t size = 0;
  const char *text = unicon_migration_json(made);
  json_t *decision = json_loads(text, 0, NULL);
  char *pretty = decision ? json_dumps(decision, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
  int code = pretty ? EXIT_DONE : tool_out_of_memory(t);
  if (code == EXIT_DONE && !(html = migrate_page(decision, &size))) code = tool_out_of_memory(t);
  if (code == EXIT_DONE) {
    const unicon_status status =
        unicon_model_save(t->ctx, unicon_migration_model(made), out->path[0]);
    if (status != UNICON_OK) code = tool_fail(t, status);
  }
  if (code == EXIT_DONE && pretty) code = output_write(t, out->path[1], pretty, strlen(pretty));
  if (code == EXIT_DONE) code = output_write(t, out->path[2], html, size);
  if (code == EXIT_DONE && tool_has(t, CLI_OPT_JSON)) {
    code = display_json(json_incref(decision)) ? EXIT_DONE : tool_out_of_memory(t);
  } else if (code == EXIT_DONE) {
    print_result(decision, tool_value(t, CLI_OPT_OUTPUT));
  }
  free(html);
  free(pretty);
  json_decref(decision);
  return code;
}

int cmd_migrate(tool *t) {
  material m = {0};
  outputs out = {.made = false};
  unicon_migration *made = NULL;
  int code = check_options(t);
  if (code != EXIT_DONE) return code;
  code = material_open(t, &m);
  if (code == EXIT_DONE) code = outputs_make(t, tool_value(t, CLI_OPT_OUTPUT), &out);
  if (code == EXIT_DONE) {
    const unicon_migration_data data =
        UNICON_MIGRATION_DATA(.old_rows = m.old_rows, .new_rows = m.new_rows,
                              .queries_old = m.queries_old, .queries_new = m.queries_new,
                              .judgements = m.judgements);
    const unicon_status status = unicon_migrate(t->ctx, &data, t->options, &made);
    display_clear(&t->display);
    if (status != UNICON_OK) code = tool_fail(t, status);
  }
  if (code == EXIT_DONE && display_interrupted()) code = tool_interrupted(t);
  if (code == EXIT_DONE) code = write_all(t, made, &out);
  if (code != EXIT_DONE && out.made) rmdir(tool_value(t, CLI_OPT_OUTPUT)); /* if it is empty */
  unicon_migration_destroy(made);
  outputs_free(&out);
  material_close(&m);
  return code;
}
