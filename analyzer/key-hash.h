/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key-hash.h - the hash of a guint64 key that two numbers were packed into. g_int64_hash looks at
 * the lower half alone: all keys that differ only in the upper one would share a place.
 */
#ifndef RS_ANALYZER_KEY_HASH_H
#define RS_ANALYZER_KEY_HASH_H

#include <glib.h>

static inline guint rs_key_hash(gconstpointer key)
{
    return (guint)((*(const guint64 *)key * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)) >> 32);
}

#endif
