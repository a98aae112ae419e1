/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wanted.h - what the command line wants to see first: a part of time, a finding, a slice.
 *
 * One for window and picture. What the run does not have is an error that names what it has.
 */
#ifndef RS_VIEWER_WANTED_H
#define RS_VIEWER_WANTED_H

#include "scene.h"
#include "scope.h"

G_BEGIN_DECLS

typedef struct {
    RsScopeOptions time;           /* from and to alone */
    const gchar *finding, *select; /* as given; NULL: not asked for */
} RsWanted;

/* What can be said before a run is read. */
gboolean rs_wanted_check(const RsWanted *wanted, GError **error);
/* Shows it in a scene that has its size. FALSE: the scene is as it was. */
gboolean rs_wanted_show(const RsWanted *wanted, RsScene *scene, GError **error);

G_END_DECLS
#endif
