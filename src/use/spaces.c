/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_vectors_match: vectors of different spaces do not meet unnoticed. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "io/sidecar.h"
#include "io/text.h"
#include "model/model.h"
#include "unicon/migrate.h"

typedef struct tally {
  int64_t with, without; /* a sidecar */
  const char *first_without;
} tally;

/* The space in which vectors of a model meet. */
static const char *meeting_space(const unicon_model *model) {
  const char *direction = unicon_model_meta(model, "direction");
  if (!direction || strcmp(direction, "shared") == 0) return "shared";
  return strcmp(direction, "old-to-new") == 0 ? "new" : "old";
}

static unicon_status look_at(unicon_ctx *ctx, const char *path, const unicon_model *model,
                             tally *t) {
  unicon__sidecar about;
  bool found;
  char id[UNICON_MODEL_ID], *name = unicon__text_join(ctx, path, ".json", "");
  if (!name) return UNICON_ERR_MEMORY;
  UNICON_TRY(unicon__sidecar_read(ctx, name, &about, &found));
  if (!found) {
    t->without++;
    if (!t->first_without) t->first_without = path;
    return UNICON_OK;
  }
  t->with++;
  unicon_model_id(model, id);
  if (strcmp(about.model, id) != 0)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%s holds vectors of another model (%s, this one is %s): they lie in "
                        "another space",
                        path, about.model, id);
  if (strcmp(about.space, meeting_space(model)) != 0)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%s holds vectors of the %s space, but those of this model meet in the %s "
                        "one",
                        path, about.space, meeting_space(model));
  return UNICON_OK;
}

/* Every .npy file of a folder. */
static unicon_status look_inside(unicon_ctx *ctx, const char *folder, const unicon_model *model,
                                 tally *t) {
  DIR *open_folder = opendir(folder);
  unicon_status status = UNICON_OK;
  if (!open_folder) return unicon__fail_io(ctx, "open the folder", folder);
  for (const struct dirent *e; status == UNICON_OK && (e = readdir(open_folder));) {
    if (e->d_name[0] == '.' || !unicon__has_suffix(e->d_name, ".npy")) continue;
    const char *path = unicon__text_join(ctx, folder, "/", e->d_name);
    status = path ? look_at(ctx, path, model, t) : UNICON_ERR_MEMORY;
  }
  closedir(open_folder);
  return status;
}

static unicon_status match(unicon_ctx *ctx, const char *path, const unicon_model *model,
                           int *known) {
  struct stat about;
  tally t = {0};
  if (!path || !model || !known)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "vectors_match needs a path, a model and an out pointer");
  if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
    UNICON_TRY(look_inside(ctx, path, model, &t));
  else
    UNICON_TRY(look_at(ctx, path, model, &t));
  if (t.with > 0 && t.without > 0)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%s mixes spaces: %lld files were written by this model, %lld say nothing "
                        "of theirs, %s for one",
                        path, (long long)t.with, (long long)t.without, t.first_without);
  *known = t.with > 0;
  return UNICON_OK;
}

unicon_status unicon_vectors_match(unicon_ctx *ctx, const char *path, const unicon_model *model,
                                   int *known) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, match(ctx, path, model, known));
}
