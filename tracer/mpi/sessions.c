/* SPDX-License-Identifier: Apache-2.0 */
#include "sessions.h"

#include <errno.h>
#include <pthread.h>

#include "record.h"

static unsigned open_count; /* atomic */

unsigned rs_mpi_sessions_open(void)
{
    return __atomic_load_n(&open_count, __ATOMIC_ACQUIRE);
}

int rs_mpi_colour_of(const char *stringtag)
{
    uint32_t h = 2166136261u;
    for (const char *p = stringtag ? stringtag : ""; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return (int)(h & INT32_MAX);
}

#if RS_MPI_HAS_SESSIONS

#define KEPT 16 /* any one of those that are open will do */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Session kept[KEPT];
static unsigned kept_count;

static bool is_inner(void)
{
    return rs_self && rs_self->depth > 0;
}

int rs_mpi_session_made(int result, const MPI_Session *session)
{
    if (result != MPI_SUCCESS || is_inner())
        return result;
    pthread_mutex_lock(&lock);
    if (kept_count < KEPT)
        kept[kept_count++] = *session;
    __atomic_add_fetch(&open_count, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_unlock(&lock);
    rs_mpi_life_begins_again();
    return result;
}

bool rs_mpi_session_ends(const MPI_Session *session)
{
    if (is_inner())
        return false;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < kept_count; i++)
        if (kept[i] == *session) {
            kept[i] = kept[--kept_count];
            break;
        }
    bool last = open_count > 0 && __atomic_sub_fetch(&open_count, 1, __ATOMIC_ACQ_REL) == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        rs_mpi_life_ends();
    return last;
}

int rs_mpi_session_world(MPI_Group *ret)
{
    pthread_mutex_lock(&lock);
    bool found =
        kept_count > 0 && rs_mpi_real_sessions.Group_from_session_pset &&
        rs_mpi_real_sessions.Group_from_session_pset(kept[0], "mpi://WORLD", ret) == MPI_SUCCESS;
    pthread_mutex_unlock(&lock);
    return found ? 0 : -ENOENT;
}

#else

int rs_mpi_session_world(MPI_Group *ret)
{
    (void)ret;
    return -ENOENT;
}

#endif
