/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta-notes.h - what the tracer says about itself, among a run's warnings: settings that were
 * wrong, features that were off, APIs that were used and not seen (META "setting.NAME",
 * "off.FEATURE", "unobserved.API").
 */
#ifndef RS_ANALYZER_META_NOTES_H
#define RS_ANALYZER_META_NOTES_H

#include "model-internal.h"

G_BEGIN_DECLS

/* One warning for each text, with the ranks that gave it. META's keys must have ranks' names. */
void rs_meta_notes_warn(RsBuilder *b);

G_END_DECLS
#endif
