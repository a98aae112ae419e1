/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unobserved.c - communication that went past the tracer: finding unobserved-communication.
 *
 * Rule: the tracer found at a rank's end that MPI or NCCL had been used though none of its calls
 * came by (META "unobserved.mpi", "unobserved.nccl").
 * A library that was only mapped counts where the whole run has no communication at all.
 * It has no cost: what the unseen calls took is not known. Needs no window.
 */
#include <string.h>

#include "analyses.h"

/* Ranks of which the same is said. */
typedef struct {
    const gchar *library; /* "MPI", "NCCL" */
    gchar *path;
    gboolean certain, in_program;
    gchar *off_why; /* the tracer's part was off: calls may have come by; NULL it was on */
    GArray *ranks;  /* gint32 */
} Unseen;

static void unseen_free(gpointer data)
{
    Unseen *u = data;
    g_free(u->path);
    g_free(u->off_why);
    g_array_unref(u->ranks);
    g_free(u);
}

/* ---- what was seen ---- */

static gboolean is_communication(const RsSig *s)
{
    return (s->kind == RS_KIND_CALL || s->kind == RS_KIND_DEVICE) &&
           (s->api == RS_API_MPI || s->api == RS_API_NCCL || s->api == RS_API_GLOO) &&
           s->klass != RS_CLASS_OTHER && s->klass != RS_CLASS_ENV;
}

static gboolean sees_communication(const RsModel *m)
{
    for (guint i = 0; i < m->sigs->len; i++)
        if (is_communication(&g_array_index(m->sigs, RsSig, i)))
            return TRUE;
    return FALSE;
}

static gboolean sees_device_of_nccl(const RsModel *m)
{
    for (guint i = 0; i < m->sigs->len; i++) {
        const RsSig *s = &g_array_index(m->sigs, RsSig, i);
        if (s->kind == RS_KIND_DEVICE && s->api == RS_API_NCCL)
            return TRUE;
    }
    return FALSE;
}

/* ---- what the tracer told ---- */

/* "used library: PATH"; NULL where it is of another version of the tracer. */
static Unseen *parse(const gchar *library, const gchar *text)
{
    gboolean used = g_str_has_prefix(text, "used "), mapped = g_str_has_prefix(text, "mapped ");
    const gchar *colon = strstr(text, ": ");
    if ((!used && !mapped) || !colon)
        return NULL;
    Unseen *u = g_new0(Unseen, 1);
    u->library = library;
    u->path = g_strdup(colon + 2);
    u->certain = used;
    u->in_program = strstr(text, " program: ") != NULL;
    u->ranks = g_array_new(FALSE, FALSE, sizeof(gint32));
    return u;
}

static const gchar *why_off(const RsModel *m, const gchar *who, const gchar *part)
{
    g_autofree gchar *key = g_strdup_printf("%s/off.%s", who, part);
    return g_hash_table_lookup(m->meta, key);
}

/* Takes `u`, or joins it to the one of which the same is said. */
static Unseen *join(GPtrArray *all, Unseen *u)
{
    for (guint i = 0; i < all->len; i++) {
        Unseen *known = g_ptr_array_index(all, i);
        if (g_str_equal(known->library, u->library) && g_str_equal(known->path, u->path) &&
            known->certain == u->certain && known->in_program == u->in_program &&
            g_strcmp0(known->off_why, u->off_why) == 0) {
            unseen_free(u);
            return known;
        }
    }
    g_ptr_array_add(all, u);
    return u;
}

static gint compare_ranks(gconstpointer a, gconstpointer b)
{
    gint32 x = *(const gint32 *)a, y = *(const gint32 *)b;
    return (x > y) - (x < y);
}

static gint compare_unseen(gconstpointer a, gconstpointer b)
{
    const Unseen *x = *(const Unseen *const *)a, *y = *(const Unseen *const *)b;
    gint by_library = strcmp(x->library, y->library);
    return by_library ? by_library : strcmp(x->path, y->path);
}

static gboolean is_asked_for(const RsContext *ctx, gint32 rank)
{
    for (guint32 i = 0; i < ctx->model->ranks->len; i++)
        if (rs_model_rank(ctx->model, i)->rank == rank)
            return ctx->rank_in[i];
    return TRUE;
}

static void collect_one(const RsContext *ctx, GPtrArray *all, const gchar *key, const gchar *text)
{
    static const struct {
        const gchar *suffix, *part, *library;
    } kinds[] = {{"/unobserved.mpi", "mpi", "MPI"}, {"/unobserved.nccl", "nccl", "NCCL"}};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (!g_str_has_suffix(key, kinds[i].suffix))
            continue;
        g_autofree gchar *who = g_strndup(key, strlen(key) - strlen(kinds[i].suffix));
        gint32 rank = g_ascii_isdigit(who[0]) ? (gint32)g_ascii_strtoll(who, NULL, 10) : -1;
        Unseen *u = is_asked_for(ctx, rank) ? parse(kinds[i].library, text) : NULL;
        if (!u)
            return;
        u->off_why = g_strdup(why_off(ctx->model, who, kinds[i].part));
        u = join(all, u);
        g_array_append_val(u->ranks, rank);
    }
}

static GPtrArray *collect(const RsContext *ctx)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(unseen_free);
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, ctx->model->meta);
    while (g_hash_table_iter_next(&it, &key, &value))
        collect_one(ctx, all, key, value);
    for (guint i = 0; i < all->len; i++)
        g_array_sort(((Unseen *)g_ptr_array_index(all, i))->ranks, compare_ranks);
    g_ptr_array_sort(all, compare_unseen);
    return all;
}

/* ---- findings ---- */

static void place(RsFinding *f, const RsModel *m, const Unseen *u)
{
    for (guint i = 0; i < u->ranks->len; i++) {
        gint32 rank = g_array_index(u->ranks, gint32, i);
        for (guint32 k = 0; k < m->ranks->len; k++) {
            if (rs_model_rank(m, k)->rank == rank && (rank >= 0 || m->ranks->len == 1))
                rs_finding_place(f, m, k);
        }
    }
}

static gchar *dup_remedy(const Unseen *u)
{
    if (u->off_why)
        return g_strdup_printf("the tracer's part for %s was off: %s", u->library, u->off_why);
    if (u->in_program)
        return g_strdup_printf("%s is linked into the program: link the program to the shared "
                               "library instead (no .a, no -static)",
                               u->library);
    return g_strdup_printf(
        "let its functions be found by name: link to the library, or take them by "
        "dlsym(RTLD_DEFAULT, ...); a handle of dlopen, RTLD_DEEPBIND, and ctypes on the library go "
        "past a preloaded tracer (in Python: %sctypes.CDLL(None)); a library that holds its own "
        "copy of %s inside must be built against the shared one",
        strcmp(u->library, "MPI") == 0 ? "mpi4py, or " : "", u->library);
}

static void add_finding(const RsContext *ctx, const Unseen *u, RsResults *results)
{
    const RsModel *m = ctx->model;
    gboolean told = strcmp(u->library, "NCCL") == 0 && u->certain && sees_device_of_nccl(m);
    RsFinding *f = rs_finding_new("unobserved-communication");
    g_autofree gchar *base = g_path_get_basename(u->path);
    place(f, m, u);
    f->title =
        u->certain
            ? g_strdup_printf("%u process%s communicated by %s (%s) past the tracer: none of its "
                              "calls was seen",
                              u->ranks->len, u->ranks->len == 1 ? "" : "es", u->library, base)
            : g_strdup_printf("%u process%s ha%s %s (%s), and no communication was seen: if it is "
                              "used, its calls go past the tracer",
                              u->ranks->len, u->ranks->len == 1 ? "" : "es",
                              u->ranks->len == 1 ? "s" : "ve", u->library, base);
    rs_finding_say(f, "%s is %s", u->path, u->in_program ? "the program itself" : "mapped");
    if (u->certain)
        rs_finding_say(f, "%s",
                       strcmp(u->library, "MPI") == 0
                           ? "at the end it said that it had been initialized"
                           : "it asked for its profiler plug-in, or opened its NVTX domain");
    if (told)
        rs_finding_say(f, "what its profiler plug-in told of its operations is in the run");
    else if (u->certain)
        rs_finding_say(f,
                       "what those calls took counts as computation or idle time in this report");
    f->severity = u->certain && !told ? "high" : "low";
    f->confidence = u->certain ? 1 : 0.3;
    f->t_end_s = (gdouble)m->duration_ns / 1e9;
    f->remedy = dup_remedy(u);
    g_ptr_array_add(results->findings, f);
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    g_autoptr(GPtrArray) all = collect(ctx);
    gboolean sees = sees_communication(ctx->model);
    for (guint i = 0; i < all->len; i++) {
        const Unseen *u = g_ptr_array_index(all, i);
        if (u->certain || !sees)
            add_finding(ctx, u, results);
    }
}

static const gchar *const kinds[] = {"unobserved-communication", NULL};

const RsAnalysis rs_analysis_unobserved = {
    .name = "unobserved",
    .help = "MPI and NCCL that were used past the tracer",
    .kinds = kinds,
    .finish = finish,
};
