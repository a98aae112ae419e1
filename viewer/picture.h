/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture.h - the whole window as a picture, without a display: for reports, READMEs and tests.
 */
#ifndef RS_VIEWER_PICTURE_H
#define RS_VIEWER_PICTURE_H

#include "scene.h"

G_BEGIN_DECLS

/* Writes a PNG of `width` x `height`: the scene, its findings, the selection's details, the status.
 * The scene is resized to fit. FALSE and `error` where the file can't be written. */
gboolean rs_picture_write(RsScene *scene, const gchar *path, gint width, gint height,
                          GError **error);

G_END_DECLS
#endif
