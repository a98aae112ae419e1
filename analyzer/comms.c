/* SPDX-License-Identifier: Apache-2.0 */
/* comms.c - who is in a communicator: world ranks and processes become RsRank indices. */
#include "key-hash.h"
#include "model-internal.h"

/* Entries of all member lists together: what damaged captures claim may cost no more. */
#define MEMBERS_MAX (1u << 24)

static guint64 pair(guint32 comm, guint32 rank)
{
    return (guint64)comm << 32 | rank;
}

static void remember(RsBuilder *b, guint32 comm, guint32 rank, guint32 comm_rank)
{
    guint64 key = pair(comm, rank);
    if (!g_hash_table_contains(b->comm_rank_of, &key))
        g_hash_table_insert(b->comm_rank_of, g_memdup2(&key, sizeof key),
                            GUINT_TO_POINTER(comm_rank + 1));
}

static guint32 *ranks_by_world_rank(const RsBuilder *b)
{
    gint32 size = b->model->world_size;
    guint32 *index = g_new(guint32, (gsize)size + 1);
    for (gint32 i = 0; i < size; i++)
        index[i] = RS_NONE;
    for (guint i = 0; i < b->model->ranks->len; i++) {
        gint32 rank = rs_model_rank(b->model, i)->rank;
        if (rank >= 0 && rank < size)
            index[rank] = i;
    }
    return index;
}

/* Room for members: the size claimed, as long as somebody vouches for it; never more, where
 * captures disagree on it. */
static guint32 member_room(const RsComm *c, const RsRawComm *raw)
{
    guint32 n = MIN(raw->n_world_ranks, (guint32)c->size);
    for (guint i = 0; i < raw->joins->len; i++) {
        gint32 r = g_array_index(raw->joins, RsJoin, i).comm_rank;
        if (r >= 0 && r < c->size)
            n = MAX(n, (guint32)r + 1);
    }
    return n;
}

static void resolve(RsBuilder *b, guint32 comm, const guint32 *by_world, guint32 *room)
{
    RsComm *c = &g_array_index(b->model->comms, RsComm, comm);
    const RsRawComm *raw = &g_array_index(b->raw_comms, RsRawComm, comm);
    guint32 n = member_room(c, raw);
    if (n > *room) {
        rs_builder_warn(b, "", 0, "a communicator of %d ranks is beyond belief: left out", c->size);
        n = 0;
    }
    *room -= n;
    c->n_members = n;
    c->members = g_new(guint32, (gsize)n + 1);
    for (guint32 i = 0; i < n; i++)
        c->members[i] = RS_NONE;
    for (guint32 i = 0; i < MIN(raw->n_world_ranks, n); i++) {
        gint32 world = raw->world_ranks[i];
        if (world >= 0 && world < b->model->world_size)
            c->members[i] = by_world[world];
    }
    for (guint i = 0; i < raw->joins->len; i++) {
        const RsJoin *j = &g_array_index(raw->joins, RsJoin, i);
        if (j->comm_rank >= 0 && (guint32)j->comm_rank < n)
            c->members[j->comm_rank] = b->rank_of_process[j->process];
    }
    for (guint32 i = 0; i < n; i++)
        if (c->members[i] != RS_NONE)
            remember(b, comm, c->members[i], i);
}

void rs_comms_resolve(RsBuilder *b)
{
    b->comm_rank_of = g_hash_table_new_full(rs_key_hash, g_int64_equal, g_free, NULL);
    g_autofree guint32 *by_world = ranks_by_world_rank(b);
    guint32 room = MEMBERS_MAX;
    for (guint i = 0; i < b->model->comms->len; i++)
        resolve(b, i, by_world, &room);
}

gint32 rs_comms_rank_of(const RsBuilder *b, guint32 event, guint32 rank)
{
    const RsSig *sig = rs_model_sig(b->model, event);
    if (sig->comm == RS_NONE)
        return -1;
    if (sig->member)
        return sig->member - 1;
    guint64 key = pair(sig->comm, rank);
    return GPOINTER_TO_INT(g_hash_table_lookup(b->comm_rank_of, &key)) - 1;
}
