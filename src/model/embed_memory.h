/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings from memory of others to memory of others (unicon_embed_memory). */
#ifndef UNICON_MODEL_EMBED_MEMORY_H
#define UNICON_MODEL_EMBED_MEMORY_H

#include "io/memory.h"
#include "model/embed.h"

#endif
